// Types of roost.mjs. Written by tools/javascript_client.py from the methods of the service: do not edit.
// Times are texts in ISO 8601, durations are seconds.

/** Options of every call: `signal` cancels it. */
export interface CallOptions {
  signal?: AbortSignal;
}

export interface ConnectOptions {
  /** API token. On a page of the server itself none is needed: the cookie of the browser signs in. */
  token?: string | null;
  /** Seconds for which the server may be away before calls and streams fail; default: 30. */
  patience?: number;
}

/** Return a client of a server; on a page, by default of the server of the page. */
export function connect(url?: string | URL, options?: ConnectOptions): Roost;

/** Error of the server, or of the connection to it. */
export class RoostError extends Error {
  constructor(code: string, message: string, options?: { status?: number; reference?: string; cause?: unknown });
  /** Name of the error: `NotFound`, `Invalid`, `Conflict`, `Forbidden`, `Busy`, `LimitReached`, `Unavailable` … */
  readonly name: string;
  /** The same as a code: `not_found`. */
  readonly code: string;
  /** Number of the error in JSON-RPC, or the status over HTTP. */
  readonly status: number | null;
  /** Reference to the log of the server, for an unexpected error. */
  readonly reference: string | null;
}

/** What a stream of a talk yields: `text` is new, `message.content` is the whole text so far. */
export interface Change {
  message: Message;
  text: string;
  cursor: string;
  /** True if the text begins again. */
  reset: boolean;
  notes: Note[];
}

export type Topic = "talk" | "meeting" | "agents" | "mail" | "monitor";

export interface Subscribing {
  topic: Topic;
  /** Cursor of the last event that was received. */
  after?: string | null;
  talkSessionId?: string;
  follow?: boolean;
  meetingId?: string;
  seenBy?: string | null;
  agentId?: string | null;
}

/** Account of a user. A session is valid while `session_epoch` is the one it began with. */
export interface Account {
  userId: string;
  role: Role;
  created: string;
  disabled: string | null;
  hasPassword: boolean;
  sessionEpoch: number;
}

/** Agent as its owner sees it. */
export interface Agent {
  agentId: string;
  userId: string;
  config: AgentConfig;
  state: State;
  paused: boolean;
  created: string;
  lastActive: string;
  queueDepth: number;
  currentTasks: string[];
  sleepUntil: string | null;
  wakeEvents: string[];
  wakeCondition: Record<string, unknown> | null;
  wakeReason: string | null;
  errorCount: number;
  meetings: string[];
  lastError: LastError | null;
  workingOn: CurrentTask | null;
}

/** Change of an agent's state: time, cause and requester. Pausing and resuming do not change the state. */
export interface AgentChange {
  at: string;
  before: State | null;
  after: State;
  cause: string;
  by: string;
  changeId: string;
}

/** Settings of an agent. Durations are in seconds. */
export interface AgentConfig {
  profile: string;
  checkMailInterval: number;
  maxConcurrentTasks: number;
  wakeOnPriority: Priority;
  inboxLimit: number;
  maxAttempts: number;
  retryDelay: number;
  taskExpiry: number | null;
  subscriptions: Subscription[];
  groups: string[];
  idleTimeout: number;
  shared: boolean;
  description: string;
  invitations: Invitations;
}

export type AgentHealth = "alive" | "waiting" | "stuck" | "failing" | "profile_missing" | "asleep" | "idle" | "stopped";

/** Summary of one agent. */
export interface AgentStatus {
  state: State;
  queueDepth: number;
  currentTask: string | null;
  sleepUntil: string | null;
  wakeEvents: string[];
  errorCount: number;
  lastActive: string;
  health: AgentHealth;
  heartbeat: string | null;
}

/** Token of a user, without its secret. `expires`: None if it is valid until it is revoked. */
export interface ApiToken {
  tokenId: string;
  userId: string;
  name: string;
  scopes: string[];
  created: string;
  expires: string | null;
}

/** Decision that a run waits for, about one tool call or step. */
export interface Approval {
  approvalId: string;
  userId: string;
  agentId: string | null;
  talkSessionId: string | null;
  runId: string | null;
  step: number;
  kind: Question;
  tool: string;
  arguments: Record<string, unknown>;
  created: string;
  decision: Decision | null;
  decided: string | null;
  note: string | null;
  profile: string;
}

/** File of a message, without its bytes. `size` is in bytes. */
export interface Attachment {
  attachmentId: string;
  name: string;
  mediaType: string;
  size: number;
  sha256: string;
}

/** Participant or invited; `status`: invited, in, declined, left or kicked. */
export interface Attendee {
  address: string;
  status: string;
  required: boolean;
  reason: string;
}

/** Entry of the audit list: a sign-in, or an action of an admin. `address`: that of the client, if known. */
export interface AuditEntry {
  entryId: string;
  time: string;
  actor: string;
  action: string;
  target: string;
  address: string;
  detail: string;
}

/** Branch of a talk: it shares the messages of `parent` up to number `parent_seq`. */
export interface Branch {
  talkSessionId: string;
  parent: string | null;
  parentSeq: number;
  created: string;
}

/** Policy for a new message while an answer is being written. */
export type BusyPolicy = "interrupt" | "queue" | "reject" | "rollback" | "steer" | "collect";

/** New hook with its path and its secret, which are shown only once. */
export interface CreatedHook {
  hook: Hook;
  path: string;
  secret: string | null;
}

/** New token with its secret, which is shown only once. */
export interface CreatedToken {
  token: ApiToken;
  secret: string;
}

/** Webhook with its new secret, which is shown only once. */
export interface CreatedWebhook {
  webhook: Webhook;
  secret: string;
}

/** Run that an agent is executing. */
export interface CurrentRun {
  runId: string;
  envelopeId: string;
  kind: string;
  since: string;
}

/** Envelope that an agent works on. `text`: the beginning of a task or message, a subject, the name of an event. */
export interface CurrentTask {
  envelopeId: string;
  kind: string;
  text: string;
}

/** User who is signed in. `scopes`: those of the API token; `*` without one. `role`: None without an account. */
export interface CurrentUser {
  userId: string;
  scopes: string[];
  role: Role | null;
}

/** Envelope that could not be handled, with the reason and the number of attempts. */
export interface DeadLetter {
  letterId: string;
  userId: string;
  agentId: string | null;
  kind: LetterKind;
  fault: string;
  reason: string;
  attempts: number;
  created: string;
  envelope: Record<string, unknown>;
  runId: string | null;
}

export type Decision = "approved" | "allowed" | "declined" | "answered";

/** Deletion of a user. `step`: what is deleted now. `removed`: things that are deleted, since the last start. */
export interface Deletion {
  userId: string;
  step: string;
  removed: number;
  isOver: boolean;
}

/** Delivery of one fact to a webhook, with its last attempt. */
export interface Delivery {
  deliveryId: string;
  webhookId: string;
  event: string;
  state: DeliveryState;
  created: string;
  attempts: number;
  nextAttempt: string | null;
  status: number | null;
  seconds: number | null;
  error: string | null;
  reply: string;
}

/** State of a delivery. `failed`: it was tried as often as allowed. */
export type DeliveryState = "pending" | "delivered" | "failed";

/** Number of messages, tasks, mail and events from a sender to a recipient. Both are addresses: `user:ann`, `agent:ann/d`, `schedule:…`; `others` stands for all other users. */
export interface EdgeCount {
  sender: string;
  recipient: string;
  count: number;
}

/** Published event. `takers`: number of inboxes that received it. */
export interface Event {
  eventId: string;
  userId: string;
  name: string;
  data: unknown;
  priority: Priority;
  publisher: string;
  created: string;
  takers: number;
}

/** Part of an export; `after` is the cursor of the next part, and None in the last one. */
export interface ExportPart {
  text: string;
  after: string | null;
}

/** Fact. `about`: the agent (`owner/id`), the talk, or empty. */
export interface Fact {
  name: Name;
  at: string;
  userId: string;
  about: string | null;
  data: Record<string, unknown>;
  root: string;
  cursor: string;
}

/** Facts in order. `gap`: some after the cursor are no longer kept. `more`: further facts are available. */
export interface FactPage {
  facts: Fact[];
  cursor: string;
  at: string;
  gap: boolean;
  more: boolean;
}

/** Name of a figure; what its labels mean. */
export type FigureName = "runs" | "waited" | "lateness" | "tokens" | "cost" | "errors" | "lost" | "dead_letters" | "changes" | "queue" | "agents" | "sent";

/** Values of one bucket. A bucket without values has no point. */
export interface FigurePoint {
  at: string;
  count: number;
  total: number;
  bins: number[];
}

/** Figures from `since` on and before `until`, in buckets of `width` seconds. */
export interface FigureReport {
  since: string;
  until: string;
  width: number;
  series: FigureSeries[];
  bounds: number[];
}

/** Points of one figure with one label, in the order of time. */
export interface FigureSeries {
  name: FigureName;
  label: string;
  points: FigurePoint[];
}

/** Message that contains all words of a query. `excerpt` is one line of its text; `ranges` are the places of the matched words in it, as (start, end) in characters: in order, none overlaps another. */
export interface Hit {
  talkSessionId: string;
  title: string;
  seq: number;
  sender: Sender;
  created: string;
  excerpt: string;
  ranges: ([number, number])[];
}

/** Hook of a user, without its token and its secret. */
export interface Hook {
  hookId: string;
  userId: string;
  name: string;
  event: string | null;
  agent: string | null;
  task: string | null;
  headers: string[];
  isSigned: boolean;
  created: string;
}

/** Full report about one agent. */
export interface Inspection {
  agent: Agent;
  health: AgentHealth;
  running: CurrentRun[];
  waiting: Record<string, number>;
  turnState: Record<string, unknown>;
  memories: number;
  timers: ([string, string])[];
  changes: AgentChange[];
  runs: RunRecord[];
  meetings: MeetingSummary[];
}

/** Code with which a user sets a password, once, until it expires; it is shown only here. */
export interface Invitation {
  account: Account;
  code: string;
  expires: string;
}

/** Response of an agent to an invitation; with `ask` its brain decides. */
export type Invitations = "accept" | "decline" | "ask";

export type Kind = "talk" | "task" | "mail" | "event" | "meeting" | "answer";

/** Newest failed run of an agent. `fault` is its class: one of `core.failures.faults`, for example. */
export interface LastError {
  runId: string;
  fault: string;
  at: string;
}

/** Kind of a dead letter: an envelope, an event without subscribers, an effect that could not be sent, or a fact. */
export type LetterKind = "talk" | "task" | "mail" | "event" | "meeting" | "answer" | "outgoing" | "webhook";

/** Mail. `created`: time of delivery. `processed`: time at which the receiving agent had handled it. */
export interface Mail {
  mailId: string;
  threadId: string;
  sender: string;
  recipient: string;
  subject: string;
  body: string;
  priority: Priority;
  status: MailStatus;
  created: string;
  replyTo: string | null;
  expires: string | null;
  readAt: string | null;
  processed: string | null;
  cursor: string;
}

/** Mail of one person in the order in which it arrived. `more`: further mail is available after the cursor. */
export interface MailPage {
  mail: Mail[];
  cursor: string;
  more: boolean;
}

/** Status of a mail for its recipient. */
export type MailStatus = "unread" | "read" | "replied" | "archived";

/** Meeting in a list, with its view. */
export interface MeetingOverview {
  meetingId: string;
  summary: MeetingSummary;
  view: MeetingView | null;
}

/** Meeting in a list. `participant`: the user, or an agent of the user, that takes part. */
export interface MeetingSummary {
  meetingId: string;
  topic: string;
  creator: string;
  phase: string;
  participant: string;
  status: string;
  called: string;
  over: string | null;
}

/** Meeting as one of its participants sees it. `words`, `played` and `refused` hold the newest, in order. */
export interface MeetingView {
  meetingId: string;
  topic: string;
  creator: string;
  phase: string;
  seenBy: string;
  status: string;
  participants: Attendee[];
  present: string[];
  chair: string | null;
  moderator: string | null;
  floor: string;
  speakers: string[];
  hands: string[];
  words: Spoken[];
  said: number;
  refused: Refusal[];
  game: string | null;
  state: unknown;
  board: string;
  mover: string | null;
  moves: number;
  played: MoveMade[];
  outcome: string | null;
  winner: string | null;
  called: string | null;
  deadline: string | null;
  began: string | null;
  over: string | null;
  reason: string;
  minutes: string;
  cursor: string;
  may: string[];
}

/** Text that an agent remembers under a key. */
export interface Memory {
  key: string;
  text: string;
  created: string;
}

/** Message of a talk. `seq` counts from 1 without gaps; `error` is one sentence for users. The sender is `user` or `agent`; outside talks it is an address. `notes` hold the output of the agent's side channels: its thoughts and tool calls. */
export interface Message {
  seq: number;
  sender: Sender;
  content: string;
  status: Status;
  created: string;
  error: string | null;
  runId: string | null;
  notes: Note[];
  attachments: Attachment[];
}

/** Policy for ticks missed during downtime: run none, one for all, or each. */
export type MissedPolicy = "skip" | "once" | "all";

/** Move in a game that was made; `entry` is its id. */
export interface MoveMade {
  entry: string;
  player: string;
  move: unknown;
  at: string;
}

/** Name of a fact. */
export type Name = "AgentCreated" | "AgentStarted" | "AgentStopped" | "AgentPaused" | "AgentResumed" | "AgentDeleted" | "AgentSlept" | "AgentWoke" | "AgentFailed" | "AgentStuck" | "AgentUnstuck" | "TaskSent" | "TaskStarted" | "TaskDone" | "TaskFailed" | "TaskRetried" | "TaskCancelled" | "TaskExpired" | "MailSent" | "MailProcessed" | "BroadcastSent" | "EventPublished" | "ScheduleTicked" | "MeetingCalled" | "MeetingStarted" | "MeetingFailed" | "MeetingEnded" | "LetterDied" | "RunStarted" | "RunEnded" | "ApprovalAsked" | "ApprovalDecided" | "WorkerRestarted" | "ProviderPaused" | "ProviderResumed" | "WebhookPaused" | "FactsMissed";

/** One process of a cluster. Its id is new at each start; its name is chosen by people. */
export interface Node {
  nodeId: string;
  name: string;
  url: string;
  version: string;
  profiles: string[];
  state: NodeState;
  started: string;
  lease: string;
  load: NodeLoad;
}

/** Load that a node reports with each renewal of its lease. */
export interface NodeLoad {
  awake: number;
  room: number;
  cpu: number | null;
  clockError: number;
}

export type NodeState = "up" | "draining" | "gone";

export interface None {
}

/** Text on a side channel. */
export interface Note {
  channel: string;
  text: string;
}

/** Options of a talk; missing ones are those of the profile. */
export interface Options {
  model?: string | null;
  temperature?: number | null;
  instructions?: string | null;
}

/** Policy for a tick while earlier ones of its schedule are waiting or running. */
export type Overlap = "skip" | "queue_one" | "queue_all" | "replace";

/** Messages in order, and the cursor for the next page. */
export interface Page {
  messages: Message[];
  cursor: string;
  running: boolean;
  moreBefore: boolean;
  moreAfter: boolean;
}

/** Standing permission of an agent, or of a profile in talks without an agent, to call a tool without asking. */
export interface Permission {
  userId: string;
  tool: string;
  agentId: string | null;
  profile: string | null;
  created: string;
}

/** Priority of an envelope. Compare by `level`: as texts they sort alphabetically. */
export type Priority = "low" | "normal" | "high" | "urgent";

export type Question = "call" | "unknown" | "step";

/** Progress of a stop: requested, acknowledged (no more output), quiesced (everything has ended). `abandoned` names what could not be stopped; its later output is discarded. */
export interface Receipt {
  requested: string;
  acknowledged: string | null;
  quiesced: string | null;
  abandoned: string[];
}

/** Refused entry, with the reason. */
export interface Refusal {
  entry: string;
  sender: string;
  kind: string;
  reason: string;
  text: string;
  at: string | null;
}

/** Result of running a run again from its journal. */
export interface Replay {
  runId: string;
  text: string;
  recordedText: string;
  isIdentical: boolean;
  diff: string;
  steps: string[];
  sent: string[];
  stoppedAt: number | null;
  error: string | null;
}

export type Role = "user" | "admin";

/** Finished run of a brain. */
export interface Run {
  runId: string;
  kind: string;
  talkSessionId: string | null;
  agentId: string | null;
  envelopeId: string;
  outcome: string;
  attempts: number;
  started: string;
  ended: string;
  fault: string | null;
  steps: number;
  root: string;
  meetingId: string | null;
  usage: Usage;
}

/** Run with its answer and its actions. */
export interface RunEntry {
  run: Run;
  text: string;
  steps: Step[];
  given: Record<string, unknown>;
  usage: Usage;
  refused: Refusal[];
  traceback: string | null;
  inputs: RunInput[];
  firstOutput: string | null;
  stop: Receipt | null;
}

/** Message that a run handled. */
export interface RunInput {
  sender: string;
  text: string;
  subject: string;
  data: unknown;
}

/** Outcome in the record of a run. */
export type RunOutcome = "done" | "failed" | "stopped" | "lost" | "waiting" | "repeated";

/** Finished run. */
export interface RunRecord {
  runId: string;
  kind: string;
  envelopeId: string;
  outcome: string;
  attempts: number;
  started: string;
  ended: string;
  fault: string | null;
  root: string;
  model: string;
  inputTokens: number;
  outputTokens: number;
  cost: number | null;
}

/** Schedule of an agent as its owner sees it. `next` is None if it never runs again. */
export interface Schedule {
  scheduleId: string;
  agentId: string;
  userId: string;
  name: string;
  prompt: string;
  priority: Priority;
  rule: Record<string, unknown>;
  overlap: Overlap;
  missed: MissedPolicy;
  catchUp: number;
  paused: boolean;
  next: string | null;
  created: string;
}

/** Hits in order, and the cursor of the next page; None if there is none. A page may have fewer hits than the limit, or none, although there is a next one: the time of a call is bounded. */
export interface SearchPage {
  hits: Hit[];
  cursor: string | null;
}

export type Sender = "user" | "agent";

/** Message in a meeting. `entry` is its id, the same in every view; `number` is its position. */
export interface Spoken {
  entry: string;
  number: number;
  sender: string;
  text: string;
  to: string[];
  at: string;
}

export type State = "idle" | "active" | "sleeping" | "waiting" | "stopped";

/** Status of a message; all but `streaming` are final. */
export type Status = "complete" | "streaming" | "interrupted" | "failed" | "withdrawn";

/** Step of a run, for display. */
export interface Step {
  number: number;
  kind: string;
  name: string;
  outcome: string;
  request: unknown;
  result: unknown;
  began: string;
  ended: string | null;
  runId: string;
  key: string;
  approvalId: string | null;
  askedRunId: string | null;
}

/** Subscription to events whose name matches the pattern and whose data has these fields. */
export interface Subscription {
  pattern: string;
  fields: Record<string, unknown>;
}

/** Talk session as its owner sees it. `options` override model, temperature and instructions. */
export interface Talk {
  talkSessionId: string;
  profile: string;
  busy: BusyPolicy;
  title: string;
  created: string;
  updated: string;
  messages: number;
  running: boolean;
  options: Record<string, unknown>;
  agent: string | null;
  asking: boolean;
  parent: string | null;
  parentSeq: number;
  root: string;
}

/** Approval of a talk, with the message it belongs to. */
export interface TalkApproval {
  approval: Approval;
  seq: number | null;
  isPending: boolean;
}

/** Task of an agent. `result` is its answer; `error` is one sentence for users. */
export interface Task {
  taskId: string;
  agentId: string;
  userId: string;
  sender: string;
  prompt: string;
  priority: Priority;
  status: TaskStatus;
  attempts: number;
  created: string;
  started: string | null;
  ended: string | null;
  expires: string | null;
  result: string | null;
  error: string | null;
  scheduleId: string | null;
}

export type TaskStatus = "queued" | "running" | "waiting" | "done" | "failed" | "cancelled" | "expired";

/** Part of a transcript, and the number of its last message, for the next part; None after the last part. */
export interface TranscriptPart {
  text: string;
  after: number | null;
}

/** Usage of one or more model calls. The cost is in US dollars; None if it is not fully known. */
export interface Usage {
  inputTokens: number;
  outputTokens: number;
  cost: number | null;
  model: string;
}

/** Envelope in an inbox. `text`: the beginning of a task, answer or message, a subject, the name of an event. */
export interface Waiting {
  envelopeId: string;
  kind: Kind;
  lane: string;
  priority: Priority;
  sender: string;
  text: string;
  created: string;
  due: string | null;
  failures: number;
  isParked: boolean;
}

/** Webhook of a user, without its secret. */
export interface Webhook {
  webhookId: string;
  userId: string;
  name: string;
  url: string;
  events: string[];
  created: string;
  paused: boolean;
  reason: string | null;
  failures: number;
  lastSuccess: string | null;
  missed: number;
}

export interface TalksMethods {
  /** Store the message, apply the `busy` policy to the run in progress, and return; the answer follows. */
  addMessage(params: { talkSessionId: string; content: string; key?: string | null; busy?: string | null; attachments?: string[] }, options?: CallOptions): Promise<Message>;
  /** Change the title and settings of the talk from the next answer on: all of them, or none if one is invalid. */
  configure(params: { talkSessionId: string; title?: string | null; profile?: string | null; busy?: string | null; options?: Options | null }, options?: CallOptions): Promise<Talk>;
  /** Start a talk with a profile (the default if none is named); return its id. */
  createTalkSession(params?: { profile?: string | null; agent?: string | null; busy?: string; title?: string | null; model?: string | null; temperature?: number | null; instructions?: string | null }, options?: CallOptions): Promise<Talk>;
  /** Stop the talk, and delete it with its branches and everything that belongs to it. Forks of it stay. */
  delete(params: { talkSessionId: string }, options?: CallOptions): Promise<null>;
  /** Send another text in place of one's message number `seq`, in a branch of the talk; return the branch. */
  editMessage(params: { talkSessionId: string; seq: number; content: string; key?: string | null }, options?: CallOptions): Promise<Talk>;
  /** Return a part of the transcript of a talk, as `markdown` or `json`: the messages after a number. */
  exportPart(params: { talkSessionId: string; format?: string; after?: number }, options?: CallOptions): Promise<TranscriptPart>;
  /** Make an independent talk of the messages up to number `seq`, by default all of them; return it. */
  fork(params: { talkSessionId: string; seq?: number | null; title?: string | null; key?: string | null }, options?: CallOptions): Promise<Talk>;
  /** Return the newest messages; with `after` (a cursor) the changes since; with `before` (a number) older ones. */
  getMessages(params: { talkSessionId: string; after?: string | null; before?: number | null; limit?: number }, options?: CallOptions): Promise<Page>;
  /** Return a talk. */
  getSession(params: { talkSessionId: string }, options?: CallOptions): Promise<Talk>;
  /** Return the tokens of all answers of the talk, and their cost if it is known for each of them. */
  getUsage(params: { talkSessionId: string }, options?: CallOptions): Promise<Usage>;
  /** Add a transcript in JSON as a new talk, and return its id. Nothing is added if any field is invalid. */
  importTalk(params?: { text?: string; profile?: string | null; agent?: string | null; key?: string | null; attachments?: string[] }, options?: CallOptions): Promise<Talk>;
  /** Return the talk with all its branches, in order of creation. Forks are talks of their own. */
  listBranches(params: { talkSessionId: string }, options?: CallOptions): Promise<Branch[]>;
  /** Return the user's talks, last used first; `before` is the last id of the previous page. */
  listSessions(params?: { limit?: number; before?: string | null }, options?: CallOptions): Promise<Talk[]>;
  /** Answer a message again, in a branch of the talk; return the branch. `seq`: the answer, by default the last. */
  regenerate(params: { talkSessionId: string; seq?: number | null; key?: string | null }, options?: CallOptions): Promise<Talk>;
  /** Change the title of a talk. */
  rename(params: { talkSessionId: string; title: string }, options?: CallOptions): Promise<Talk>;
  /** Return messages of the user's talks, or of one talk, that contain all words and quoted phrases of the query. */
  search(params: { query: string; limit?: number; after?: string | null; talkSessionId?: string | null }, options?: CallOptions): Promise<SearchPage>;
  /** Stop the run in progress and drop queued messages. Wait up to `wait` seconds until it has stopped. */
  stop(params: { talkSessionId: string; wait?: number }, options?: CallOptions): Promise<Receipt>;
  /** Yield what exists, then each piece as it is written; end with the run, or never with `follow`. */
  streamMessages(
    params: { talkSessionId: string; after?: string | null; follow?: boolean },
    options?: CallOptions,
  ): AsyncGenerator<Change, void>;
  /** Upload a file for a message. */
  addAttachment(
    params: { name: string; data: Blob | ArrayBuffer | Uint8Array | string },
    options?: CallOptions,
  ): Promise<Attachment>;
  /** Return the bytes of a file. */
  getAttachment(params: { attachmentId: string }, options?: CallOptions): Promise<Uint8Array>;
}

export interface AgentsMethods {
  /** Send a message to all agents of the user that match all filters; return the number reached. */
  broadcast(params: { text: string; group?: string | null; profile?: string | null; ids?: string | null; state?: string | null; priority?: string }, options?: CallOptions): Promise<number>;
  /** Change settings; all others stay as they are. */
  configure(params: { agentId: string; config?: Record<string, unknown> }, options?: CallOptions): Promise<Agent>;
  /** Create an agent, which lives until it is deleted. Settings: see AgentConfig. */
  create(params: { agentId: string; start?: boolean; config?: Record<string, unknown> }, options?: CallOptions): Promise<Agent>;
  /** Create agents with the same settings: all of them or none. */
  createMany(params: { agentIds: string[]; start?: boolean; config?: Record<string, unknown> }, options?: CallOptions): Promise<null>;
  /** Delete an agent with everything that belongs to it; participants of its meetings are notified. */
  delete(params: { agentId: string }, options?: CallOptions): Promise<null>;
  /** Return agents with the text in their id or description; `after` is the last id of the previous page. */
  find(params: { text: string; limit?: number; after?: string }, options?: CallOptions): Promise<Agent[]>;
  /** Delete the memory under a key. Return False if there is none. */
  forget(params: { agentId: string; key: string }, options?: CallOptions): Promise<boolean>;
  get(params: { agentId: string }, options?: CallOptions): Promise<Agent>;
  /** Return the changes of the lifecycle state, newest first; `before` is the last id of the previous page. */
  history(params: { agentId: string; limit?: number; before?: string | null }, options?: CallOptions): Promise<AgentChange[]>;
  /** Return what is in the inbox of an agent, in the order in which it is handled, with what it handles now. */
  inbox(params: { agentId: string; limit?: number; after?: string }, options?: CallOptions): Promise<Waiting[]>;
  /** Return a report about one agent: health, current runs, inbox, state, timers, last changes and runs. */
  inspect(params: { agentId: string }, options?: CallOptions): Promise<Inspection>;
  /** Return agents by id that match all filters; `after` is the last id of the previous page. */
  list(params?: { limit?: number; after?: string; state?: string | null; paused?: boolean | null; failing?: boolean | null; profile?: string | null; text?: string | null }, options?: CallOptions): Promise<Agent[]>;
  /** Return memories of an agent: best match first, then the newest. */
  memories(params: { agentId: string; query?: string; limit?: number; before?: string | null }, options?: CallOptions): Promise<Memory[]>;
  /** Pause an agent: it starts nothing new, and running turns continue. */
  pause(params: { agentId: string }, options?: CallOptions): Promise<Agent>;
  /** Store a memory under a key, or under a new one; return the key. It replaces an older text. */
  remember(params: { agentId: string; text: string; key?: string | null }, options?: CallOptions): Promise<Memory>;
  /** Stop an agent and start it again in one step; callers that wait for its answers keep waiting. */
  restart(params: { agentId: string }, options?: CallOptions): Promise<Agent>;
  resume(params: { agentId: string }, options?: CallOptions): Promise<Agent>;
  /** Replace `turn.state` of an agent. Running turns add their changes to it. */
  setState(params: { agentId: string; state: Record<string, unknown> }, options?: CallOptions): Promise<null>;
  /** Put an agent to sleep after its turns: for some seconds, until a time, or until a wake condition is met. */
  sleep(params: { agentId: string; seconds?: number | null; until?: string | number | null; wakeOn?: Record<string, unknown> | null }, options?: CallOptions): Promise<Agent>;
  /** Start a stopped agent; has no effect on others. */
  start(params: { agentId: string }, options?: CallOptions): Promise<Agent>;
  /** Stop an agent and its turns at once; its inbox stays until it is started. */
  stop(params: { agentId: string }, options?: CallOptions): Promise<Agent>;
  /** Wake a sleeping agent; has no effect on others. */
  wake(params: { agentId: string; reason?: string }, options?: CallOptions): Promise<Agent>;
  /** Yield what the monitor records about an agent, or about all agents. */
  follow(
    params?: { agentId?: string | null; after?: string | null },
    options?: CallOptions,
  ): AsyncGenerator<Fact, void>;
}

export interface TasksMethods {
  /** Cancel a task in any state; has no effect on a finished task. */
  cancel(params: { taskId: string }, options?: CallOptions): Promise<Task>;
  get(params: { taskId: string }, options?: CallOptions): Promise<Task>;
  /** Return tasks, newest first; `before` is the last id of the previous page. */
  list(params?: { agent?: string | null; status?: string | null; limit?: number; before?: string | null }, options?: CallOptions): Promise<Task[]>;
  /** Send a task to an agent; return its id. A repeated call with the same `key` returns the same task. */
  send(params: { to: string; prompt: string; priority?: string; key?: string | null; expiresIn?: number | null; maxAttempts?: number | null }, options?: CallOptions): Promise<string>;
  /** Wait until the task has ended, or until the timeout; return it. */
  wait(params: { taskId: string; timeout?: number | null }, options?: CallOptions): Promise<Task>;
}

export interface SchedulesMethods {
  /** Change a schedule; all other settings stay. A new time counts from now; a past one is due at once. */
  change(params: { scheduleId: string; prompt?: string | null; cron?: string | null; every?: number | null; at?: string | null; zone?: string | null; priority?: string | null; overlap?: string | null; missed?: string | null; catchUp?: number | null }, options?: CallOptions): Promise<Schedule>;
  /** Create a schedule: by `cron` in a time zone, `every` some seconds, or once `at` a time. */
  create(params: { agent: string; prompt: string; cron?: string | null; every?: number | null; at?: string | null; zone?: string | null; name?: string | null; priority?: string; overlap?: string; missed?: string; catchUp?: number }, options?: CallOptions): Promise<Schedule>;
  /** Delete a schedule; its posted tasks stay. */
  delete(params: { scheduleId: string }, options?: CallOptions): Promise<null>;
  get(params: { scheduleId: string }, options?: CallOptions): Promise<Schedule>;
  /** Return schedules by id; `after` is the last id of the previous page. */
  list(params?: { agent?: string | null; limit?: number; after?: string }, options?: CallOptions): Promise<Schedule[]>;
  /** Return the next `count` times; none while it is paused. */
  nextTimes(params: { scheduleId: string; count?: number }, options?: CallOptions): Promise<string[]>;
  pause(params: { scheduleId: string }, options?: CallOptions): Promise<Schedule>;
  /** Resume a schedule; ticks during the pause are not made up for. */
  resume(params: { scheduleId: string }, options?: CallOptions): Promise<Schedule>;
}

export interface SleepSchedulerMethods {
  /** Remove the wake time; the agent sleeps until another condition is met. */
  cancelWake(params: { agentId: string }, options?: CallOptions): Promise<null>;
  /** Return the wake time; None if there is none. */
  getNextWakeTime(params: { agentId: string }, options?: CallOptions): Promise<string | null>;
  /** Wake a sleeping agent at this time instead of any other; its other wake conditions stay. */
  scheduleWake(params: { agentId: string; time: string | number }, options?: CallOptions): Promise<null>;
}

export interface MailMethods {
  /** Archive a mail: it is not listed or counted any more. A receiving agent still handles it. */
  archive(params: { mailId: string }, options?: CallOptions): Promise<Mail>;
  /** Return mail to the user in the order in which it arrived: after a cursor, or the newest. */
  arrivals(params?: { after?: string | null; limit?: number }, options?: CallOptions): Promise<MailPage>;
  /** Delete a mail from the user's own mailbox; its sender no longer sees it either. */
  delete(params: { mailId: string }, options?: CallOptions): Promise<null>;
  /** Forward a mail below a `note`, from the mailbox it is in, in a new thread; return the new mail's id. */
  forward(params: { mailId: string; to: string; note?: string; sender?: string | null; priority?: string | null; key?: string | null }, options?: CallOptions): Promise<string>;
  /** Return a mail without marking it as read. */
  get(params: { mailId: string }, options?: CallOptions): Promise<Mail>;
  /** Add a mail of an export to the user's mailbox; return whether it was added, or is there already. */
  importMail(params: { mailId: string; sender: string; subject: string; body: string; created: string; threadId?: string | null; priority?: string; status?: string; replyTo?: string | null; expires?: string | null; readAt?: string | null }, options?: CallOptions): Promise<boolean>;
  /** Return the mail in the user's own mailbox, or in that of an agent, without expired mail. */
  inbox(params?: { box?: string | null; status?: string | null; includeArchived?: boolean; newest?: boolean; limit?: number; before?: string | null }, options?: CallOptions): Promise<Mail[]>;
  /** Return a mail and mark it as read; the sender's reading does not mark it. */
  read(params: { mailId: string }, options?: CallOptions): Promise<Mail>;
  /** Reply to the sender in the same thread, by default with the same priority; return the new mail's id. */
  reply(params: { mailId: string; body: string; sender?: string | null; priority?: string | null; subject?: string | null; key?: string | null }, options?: CallOptions): Promise<string>;
  /** Send mail to an agent or a user, as the user or as one of their agents; return its id. */
  send(params: { to: string; subject: string; body: string; sender?: string | null; priority?: string; expiresIn?: number | null; key?: string | null }, options?: CallOptions): Promise<string>;
  /** Return the mail that the user has sent, not that of agents, newest first, with expired mail. */
  sent(params?: { limit?: number; before?: string | null }, options?: CallOptions): Promise<Mail[]>;
  /** Return the newest mails of a thread in order, from either end, archived ones too. */
  thread(params: { threadId: string; limit?: number; before?: string | null }, options?: CallOptions): Promise<Mail[]>;
  /** Return the number of unread mails in the user's own mailbox, or in that of an agent. */
  unreadCount(params?: { box?: string | null }, options?: CallOptions): Promise<number>;
  /** Return mail that arrived after a cursor once there is some; none if the time is up or Roost closes. */
  wait(params: { after: string; timeout?: number | null }, options?: CallOptions): Promise<MailPage>;
  /** Yield each mail to the user when it arrives, from now or from a cursor on. */
  follow(params?: { after?: string | null }, options?: CallOptions): AsyncGenerator<Mail, void>;
}

export interface EventsMethods {
  /** Return published events, newest first, from `since` on and before `until`; `name` may be a pattern. */
  history(params?: { name?: string | null; since?: string | number | null; until?: string | number | null; limit?: number; before?: string | null }, options?: CallOptions): Promise<Event[]>;
  /** Publish an event to the user's agents that subscribe to it or sleep until it; return its id. */
  publish(params: { name: string; data?: unknown; priority?: string; optional?: boolean }, options?: CallOptions): Promise<string>;
}

export interface MeetingsMethods {
  /** Call a meeting; return its id. It begins when all required have joined, or fails after `deadline` seconds. */
  call(params: { topic: string; required?: string[]; optional?: string[]; floor?: string; moderator?: string | null; game?: string | null; setting?: unknown; deadline?: number; open?: boolean; maxWords?: number | null; maxMoves?: number; turnTimeout?: number; maxMisses?: number; priority?: string; by?: string | null; key?: string | null }, options?: CallOptions): Promise<string>;
  /** Cancel an own call before the start: the meeting fails, and all invited participants get the reason. */
  cancel(params: { meetingId: string; reason?: string; by?: string | null }, options?: CallOptions): Promise<MeetingView>;
  /** Decline an invitation. */
  decline(params: { meetingId: string; reason?: string; by?: string | null }, options?: CallOptions): Promise<MeetingView>;
  /** End a meeting for all; without `minutes`, they are generated from the log. */
  end(params: { meetingId: string; minutes?: string; by?: string | null }, options?: CallOptions): Promise<MeetingView>;
  /** Give a participant the floor, as the moderator. */
  grant(params: { meetingId: string; who: string; by?: string | null }, options?: CallOptions): Promise<MeetingView>;
  /** Invite another participant; one that joins late gets the whole log. */
  invite(params: { meetingId: string; who: string; required?: boolean; by?: string | null }, options?: CallOptions): Promise<MeetingView>;
  /** Accept an invitation, join late or again, or join an open meeting or one of an own agent. */
  join(params: { meetingId: string; by?: string | null }, options?: CallOptions): Promise<MeetingView>;
  /** Remove a participant, as the chair. */
  kick(params: { meetingId: string; who: string; reason?: string; by?: string | null }, options?: CallOptions): Promise<MeetingView>;
  /** Leave a meeting. The last participant ends it. If the creator leaves before the start, it fails. */
  leave(params: { meetingId: string; reason?: string; by?: string | null }, options?: CallOptions): Promise<MeetingView>;
  /** Return meetings of the user and their agents, newest first; or only those of a `participant`. */
  list(params?: { participant?: string | null; phase?: string | null; limit?: number; before?: string | null }, options?: CallOptions): Promise<MeetingSummary[]>;
  /** Return the minutes as Markdown: topic, times, participants, messages and result so far. */
  minutes(params: { meetingId: string; seenBy?: string | null }, options?: CallOptions): Promise<string>;
  /** Change the shared state by the rules of the game; tic-tac-toe takes `{"cell": 5}`. */
  move(params: { meetingId: string; move: unknown; by?: string | null; key?: string | null }, options?: CallOptions): Promise<MeetingView>;
  /** Return meetings as `list` does, each with its view, which has no messages. */
  overview(params?: { participant?: string | null; phase?: string | null; limit?: number; before?: string | null }, options?: CallOptions): Promise<MeetingOverview[]>;
  /** Skip the own turn; or that of another participant, as chair or moderator, or after a long silence. */
  passTurn(params: { meetingId: string; who?: string | null; by?: string | null }, options?: CallOptions): Promise<MeetingView>;
  raiseHand(params: { meetingId: string; by?: string | null }, options?: CallOptions): Promise<MeetingView>;
  /** Say something to all. `to`: participants to mention; `hand`: raise a hand to say more. */
  say(params: { meetingId: string; text: string; to?: string[]; hand?: boolean; by?: string | null; key?: string | null }, options?: CallOptions): Promise<Spoken>;
  /** Return the view of the user, or of the agent `seen_by`, with the newest `limit` messages. */
  view(params: { meetingId: string; seenBy?: string | null; limit?: number }, options?: CallOptions): Promise<MeetingView>;
  /** Return the views of the user and of their agents in a meeting, without messages; the user's is first. */
  views(params: { meetingId: string }, options?: CallOptions): Promise<MeetingView[]>;
  /** Return the view once it differs from the one with this cursor, the meeting is over, or the time is up. */
  wait(params: { meetingId: string; after: string; seenBy?: string | null; timeout?: number | null }, options?: CallOptions): Promise<MeetingView>;
  /** Yield the view, and again after each change; end with the meeting. */
  watch(
    params: { meetingId: string; seenBy?: string | null; after?: string | null },
    options?: CallOptions,
  ): AsyncGenerator<MeetingView, void>;
}

export interface DeadLettersMethods {
  drop(params: { letterId: string }, options?: CallOptions): Promise<null>;
  /** Drop all dead letters, or those that `list` would return; return their number. */
  dropAll(params?: { agent?: string | null; kind?: string | null; fault?: string | null }, options?: CallOptions): Promise<number>;
  get(params: { letterId: string }, options?: CallOptions): Promise<DeadLetter>;
  /** Return dead letters, newest first: all, or those of an agent, with this kind, with this fault. */
  list(params?: { agent?: string | null; kind?: string | null; fault?: string | null; limit?: number; before?: string | null }, options?: CallOptions): Promise<DeadLetter[]>;
  /** Post the work again as if it were sent now. If that fails, the error is raised and the letter stays. */
  retry(params: { letterId: string }, options?: CallOptions): Promise<null>;
  /** Retry all dead letters, or those that `list` would return, oldest first; return the number posted. */
  retryAll(params?: { agent?: string | null; kind?: string | null; fault?: string | null }, options?: CallOptions): Promise<number>;
}

export interface ApprovalsMethods {
  /** Allow the call, and later calls of this tool by the same agent, or profile if there is no agent. */
  allowAlways(params: { approvalId: string }, options?: CallOptions): Promise<Approval>;
  /** Report that it was executed, with this result; JSON for a step. The run continues with it. */
  answer(params: { approvalId: string; result: string }, options?: CallOptions): Promise<Approval>;
  /** Approve the call or step. If its result is unknown, it is executed again. */
  approve(params: { approvalId: string }, options?: CallOptions): Promise<Approval>;
  /** Decline the call or step; the caller gets the reason. */
  decline(params: { approvalId: string; reason?: string | null }, options?: CallOptions): Promise<Approval>;
  get(params: { approvalId: string }, options?: CallOptions): Promise<Approval>;
  /** Return the approvals of a talk, decided ones too, oldest first, each with the number of its answer. */
  inTalk(params: { talkSessionId: string; limit?: number }, options?: CallOptions): Promise<TalkApproval[]>;
  /** Return pending approvals, newest first; with `all`, decided ones too. */
  list(params?: { all?: boolean; limit?: number; before?: string | null }, options?: CallOptions): Promise<Approval[]>;
  /** Return the standing permissions of a user, which `allow_always` has given. */
  permissions(params?: { limit?: number }, options?: CallOptions): Promise<Permission[]>;
  /** Revoke a standing permission of an agent or a profile: the next call of the tool asks again. */
  revoke(params: { tool: string; agentId?: string | null; profile?: string | null }, options?: CallOptions): Promise<null>;
}

export interface RunsMethods {
  /** Return a run with its answer and its steps in order, including those of earlier attempts. */
  get(params: { runId: string }, options?: CallOptions): Promise<RunEntry>;
  /** Return finished runs, newest first: of a talk, of an agent, or all; with this outcome, and of this kind. */
  list(params?: { talk?: string | null; agent?: string | null; outcome?: string | RunOutcome | null; kind?: string | Kind | null; limit?: number; before?: string | null }, options?: CallOptions): Promise<Run[]>;
  /** Replay a run from its journal and compare the outcome; nothing is sent or written. */
  replay(params: { runId: string; until?: number | null; live?: boolean; within?: number }, options?: CallOptions): Promise<Replay>;
}

export interface MonitorMethods {
  /** Return who talks to whom, with the number of messages, tasks, mail and events; the most frequent first. */
  edges(params: { since: string | number; until?: string | number | null; limit?: number }, options?: CallOptions): Promise<EdgeCount[]>;
  /** Return facts of the user in order: after a cursor, or the newest. */
  facts(params?: { after?: string | null; limit?: number }, options?: CallOptions): Promise<FactPage>;
  /** Return figures of the user over time, of all names or of one, in buckets of `width` seconds. */
  figures(params: { since: string | number; until?: string | number | null; name?: string | null; width?: number | null }, options?: CallOptions): Promise<FigureReport>;
  /** Return the status of the user's agents, by id; `after` is the last id of the previous page. */
  states(params?: { limit?: number; after?: string }, options?: CallOptions): Promise<Record<string, AgentStatus>>;
  /** Return the facts after a cursor once there are some; none if the time is up or Roost closes. */
  wait(params: { after: string; timeout?: number | null }, options?: CallOptions): Promise<FactPage>;
  /** Yield each fact as it is recorded, from now or from a cursor on. */
  follow(params?: { after?: string | null }, options?: CallOptions): AsyncGenerator<Fact, void>;
}

export interface TokensMethods {
  /** Create a token for a program, with the secret that it sends; the secret cannot be read again. */
  create(params: { name: string; scopes?: string[]; expiresIn?: number | null }, options?: CallOptions): Promise<CreatedToken>;
  /** Return the tokens of a user, oldest first, without their secrets; expired ones too. */
  list(params?: { limit?: number; after?: string }, options?: CallOptions): Promise<ApiToken[]>;
  /** Revoke a token: requests with it are refused, and connections with it are closed within a second. */
  revoke(params: { tokenId: string }, options?: CallOptions): Promise<null>;
}

export interface UsersMethods {
  /** Create an account, and return a code with which its user sets a password; it is valid for seven days. */
  add(params: { name: string; role?: string }, options?: CallOptions): Promise<Invitation>;
  /** Return the audit list, newest first: sign-ins, actions of admins, and tokens created and revoked. */
  audit(params?: { limit?: number; before?: string }, options?: CallOptions): Promise<AuditEntry[]>;
  /** Delete a user with everything that is theirs: talks, agents, mail, files, tokens and the account. */
  delete(params: { name: string; timeout?: number | null }, options?: CallOptions): Promise<Deletion>;
  /** Disable an account: its user is signed out everywhere, and API tokens of the user are refused. */
  disable(params: { name: string }, options?: CallOptions): Promise<Account>;
  /** Enable a disabled account: its password and its API tokens are valid again, and its agents continue. */
  enable(params: { name: string }, options?: CallOptions): Promise<Account>;
  /** Return a part of everything that is stored of a user, without secrets. Joined, the parts are JSON. */
  export(params: { name: string; after?: string }, options?: CallOptions): Promise<ExportPart>;
  /** Return an account. */
  get(params: { name: string }, options?: CallOptions): Promise<Account>;
  /** Return the accounts by name. */
  list(params?: { limit?: number; after?: string }, options?: CallOptions): Promise<Account[]>;
  /** Remove the password, end all sessions, and return a code for a new password; it is valid for a day. */
  reset(params: { name: string }, options?: CallOptions): Promise<Invitation>;
  /** Make an account an `admin`, or a plain `user` again. */
  setRole(params: { name: string; role: string }, options?: CallOptions): Promise<Account>;
}

export interface WebhooksMethods {
  /** Change the URL, the events or the name; what is None stays. Pending deliveries go to the new URL. */
  change(params: { webhookId: string; url?: string | null; events?: string[] | null; name?: string | null }, options?: CallOptions): Promise<Webhook>;
  /** Post facts of the user to a URL from now on; return the webhook with the secret that signs its requests. */
  create(params: { url: string; events?: string[]; name?: string }, options?: CallOptions): Promise<CreatedWebhook>;
  /** Delete a webhook with its pending deliveries. */
  delete(params: { webhookId: string }, options?: CallOptions): Promise<null>;
  /** Return deliveries, newest first, each with its last attempt; `before` is the last id of the previous page. */
  deliveries(params: { webhookId: string; limit?: number; before?: string | null }, options?: CallOptions): Promise<Delivery[]>;
  get(params: { webhookId: string }, options?: CallOptions): Promise<Webhook>;
  /** Return the webhooks of a user, oldest first; `after` is the last id of the previous page. */
  list(params?: { limit?: number; after?: string }, options?: CallOptions): Promise<Webhook[]>;
  /** Send nothing until it is resumed. Facts are kept, up to the limit of pending deliveries. */
  pause(params: { webhookId: string }, options?: CallOptions): Promise<Webhook>;
  /** Send what is pending, and further facts. */
  resume(params: { webhookId: string }, options?: CallOptions): Promise<Webhook>;
  /** Replace the secret; return the new one. For a day, requests are signed with both. */
  rotate(params: { webhookId: string }, options?: CallOptions): Promise<CreatedWebhook>;
  /** Send one request with the type `Ping`, also if it is paused; return the delivery with its result. */
  test(params: { webhookId: string }, options?: CallOptions): Promise<Delivery>;
}

export interface HooksMethods {
  /** Create a URL to which other programs post; return its path and its secret, which cannot be read again. */
  create(params?: { event?: string | null; agent?: string | null; task?: string | null; name?: string; secret?: boolean; headers?: string[] }, options?: CallOptions): Promise<CreatedHook>;
  /** Delete a hook: requests to its URL are refused from now on. */
  delete(params: { hookId: string }, options?: CallOptions): Promise<null>;
  get(params: { hookId: string }, options?: CallOptions): Promise<Hook>;
  /** Return the hooks of a user, oldest first; `after` is the last id of the previous page. */
  list(params?: { limit?: number; after?: string }, options?: CallOptions): Promise<Hook[]>;
}

export interface NodesMethods {
  /** Have a node finish its work and leave; the others take over the rest. */
  drain(params: { nodeId: string }, options?: CallOptions): Promise<null>;
  /** Return the nodes of the cluster, oldest first; none if the store belongs to one process. */
  list(params?: { limit?: number }, options?: CallOptions): Promise<Node[]>;
}

/** Client of one server. All calls and streams share one connection, which is opened on demand. */
export interface Roost extends Disposable {
  talks: TalksMethods;
  agents: AgentsMethods;
  tasks: TasksMethods;
  schedules: SchedulesMethods;
  sleepScheduler: SleepSchedulerMethods;
  mail: MailMethods;
  events: EventsMethods;
  meetings: MeetingsMethods;
  deadLetters: DeadLettersMethods;
  approvals: ApprovalsMethods;
  runs: RunsMethods;
  monitor: MonitorMethods;
  tokens: TokensMethods;
  users: UsersMethods;
  webhooks: WebhooksMethods;
  hooks: HooksMethods;
  nodes: NodesMethods;
  /** Return the user of the token, the role of the account, and the scopes. */
  me(options?: CallOptions): Promise<CurrentUser>;
  /** Call a method of JSON-RPC by its name. */
  call(method: string, params?: Record<string, unknown> | unknown[], options?: CallOptions): Promise<unknown>;
  /** Yield the events of a topic with their cursors. */
  subscribe(params: Subscribing, options?: CallOptions): AsyncGenerator<{ cursor: string; event: unknown }, void>;
  /** Close the connection. Calls and streams in progress fail with `Unavailable`. */
  close(): void;
}
