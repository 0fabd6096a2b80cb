/**
 * Client of a Roost server, for browsers and Node, without dependencies: JSON-RPC over one WebSocket.
 *
 *     import { connect } from "./roost.mjs";
 *
 *     const roost = connect("http://localhost:8501", { token: process.env.ROOST_TOKEN });
 *     const { talkSessionId } = await roost.talks.createTalkSession({ profile: "echo" });
 *     await roost.talks.addMessage({ talkSessionId, content: "hello" });
 *     for await (const change of roost.talks.streamMessages({ talkSessionId })) console.log(change.text);
 *     roost.close();
 *
 * On a page of the server itself, `connect()` uses the cookie of the browser. Types are in `roost.d.mts`.
 */

const ONCE = 0; // not safe to repeat: sent again only if it was not sent yet
const AGAIN = 1; // safe to repeat after a lost connection
const KEYED = 2; // safe to repeat with a key, which the client adds
const GONE = 3; // safe to repeat: what is not found the second time was deleted by the first

// Methods by namespace, with the name of the namespace in JSON-RPC. Written by tools/javascript_client.py.
// <methods>
const METHODS = {
  talks: [
    "talk",
    {
      addMessage: KEYED,
      configure: AGAIN,
      createTalkSession: ONCE,
      delete: GONE,
      editMessage: KEYED,
      exportPart: AGAIN,
      fork: KEYED,
      getMessages: AGAIN,
      getSession: AGAIN,
      getUsage: AGAIN,
      importTalk: KEYED,
      listBranches: AGAIN,
      listSessions: AGAIN,
      regenerate: KEYED,
      rename: AGAIN,
      search: AGAIN,
      stop: AGAIN,
    },
  ],
  agents: [
    "agent",
    {
      broadcast: ONCE,
      configure: AGAIN,
      create: ONCE,
      createMany: ONCE,
      delete: GONE,
      find: AGAIN,
      forget: AGAIN,
      get: AGAIN,
      history: AGAIN,
      inbox: AGAIN,
      inspect: AGAIN,
      list: AGAIN,
      memories: AGAIN,
      pause: AGAIN,
      remember: KEYED,
      restart: ONCE,
      resume: AGAIN,
      setState: AGAIN,
      sleep: ONCE,
      start: AGAIN,
      stop: AGAIN,
      wake: AGAIN,
    },
  ],
  tasks: [
    "task",
    {
      cancel: AGAIN,
      get: AGAIN,
      list: AGAIN,
      send: KEYED,
      wait: AGAIN,
    },
  ],
  schedules: [
    "schedule",
    {
      change: AGAIN,
      create: ONCE,
      delete: GONE,
      get: AGAIN,
      list: AGAIN,
      nextTimes: AGAIN,
      pause: AGAIN,
      resume: AGAIN,
    },
  ],
  sleepScheduler: [
    "sleepScheduler",
    {
      cancelWake: GONE,
      getNextWakeTime: AGAIN,
      scheduleWake: AGAIN,
    },
  ],
  mail: [
    "mail",
    {
      archive: AGAIN,
      arrivals: AGAIN,
      delete: GONE,
      forward: KEYED,
      get: AGAIN,
      importMail: AGAIN,
      inbox: AGAIN,
      read: AGAIN,
      reply: KEYED,
      send: KEYED,
      sent: AGAIN,
      thread: AGAIN,
      unreadCount: AGAIN,
      wait: AGAIN,
    },
  ],
  events: [
    "event",
    {
      history: AGAIN,
      publish: ONCE,
    },
  ],
  meetings: [
    "meeting",
    {
      call: KEYED,
      cancel: AGAIN,
      decline: ONCE,
      end: ONCE,
      grant: ONCE,
      invite: ONCE,
      join: ONCE,
      kick: ONCE,
      leave: ONCE,
      list: AGAIN,
      minutes: AGAIN,
      move: KEYED,
      overview: AGAIN,
      passTurn: ONCE,
      raiseHand: ONCE,
      say: KEYED,
      view: AGAIN,
      views: AGAIN,
      wait: AGAIN,
    },
  ],
  deadLetters: [
    "deadLetter",
    {
      drop: GONE,
      dropAll: ONCE,
      get: AGAIN,
      list: AGAIN,
      retry: ONCE,
      retryAll: ONCE,
    },
  ],
  approvals: [
    "approval",
    {
      allowAlways: AGAIN,
      answer: AGAIN,
      approve: AGAIN,
      decline: AGAIN,
      get: AGAIN,
      inTalk: AGAIN,
      list: AGAIN,
      permissions: AGAIN,
      revoke: ONCE,
    },
  ],
  runs: [
    "run",
    {
      get: AGAIN,
      list: AGAIN,
      replay: ONCE,
    },
  ],
  monitor: [
    "monitor",
    {
      edges: AGAIN,
      facts: AGAIN,
      figures: AGAIN,
      states: AGAIN,
      wait: AGAIN,
    },
  ],
  tokens: [
    "token",
    {
      create: ONCE,
      list: AGAIN,
      revoke: GONE,
    },
  ],
  users: [
    "user",
    {
      add: ONCE,
      audit: AGAIN,
      delete: GONE,
      disable: AGAIN,
      enable: AGAIN,
      export: AGAIN,
      get: AGAIN,
      list: AGAIN,
      reset: ONCE,
      setRole: AGAIN,
    },
  ],
  webhooks: [
    "webhook",
    {
      change: AGAIN,
      create: ONCE,
      delete: GONE,
      deliveries: AGAIN,
      get: AGAIN,
      list: AGAIN,
      pause: AGAIN,
      resume: AGAIN,
      rotate: ONCE,
      test: ONCE,
    },
  ],
  hooks: [
    "hook",
    {
      create: ONCE,
      delete: GONE,
      get: AGAIN,
      list: AGAIN,
    },
  ],
  nodes: [
    "node",
    {
      drain: ONCE,
      list: AGAIN,
    },
  ],
};
// </methods>

const PATIENCE = 30; // seconds for which the server may be away
const FIRST_PAUSE = 100; // milliseconds; doubled after each failed attempt
const LONGEST_PAUSE = 3000;
const CONNECTING = 10_000; // milliseconds in which a connection must be open
const SILENCE = 15_000; // milliseconds without a message after which the connection is checked
const BUFFERED = 256; // events of a stream that wait for their reader
const LONGEST_WAIT = 20; // seconds that one request may wait; longer waits are repeated
const MOST_LOSSES = 5; // lost connections after which a request is given up: it may be what breaks them
const CLOSE_ERRORS = { 1009: "a message is larger than the server allows" };
const IS_OVER = {
  tasks: (task) => ["done", "failed", "cancelled", "expired"].includes(task.status),
  mail: (page) => page.mail.length > 0,
  meetings: (view, { after }) => view.cursor !== after || ["failed", "ended"].includes(view.phase),
  monitor: (page) => page.facts.length > 0 || page.gap,
};
const CODES = { "-32700": "parse_error", "-32600": "invalid_request", "-32601": "method_not_found" };

/** Error of the server, or of the connection to it. `name` is that of the error, such as `NotFound`. */
export class RoostError extends Error {
  constructor(code, message, { status = null, reference = null, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = code.replace(/(?:^|_)([a-z])/g, (_, letter) => letter.toUpperCase());
    this.code = code;
    this.status = status;
    this.reference = reference;
  }
}

/** Return a client of the server at this URL. Nothing is sent yet: `me()` checks the connection. */
export function connect(url = globalThis.location?.origin, { token = null, patience = PATIENCE } = {}) {
  return new Roost(url, token, patience);
}

class Roost {
  #connection;
  #http;

  constructor(url, token, patience) {
    this.#http = new Http(url, token);
    this.#connection = new Connection(this.#http, patience * 1000);
    for (const [name, [noun, methods]] of Object.entries(METHODS)) {
      this[name] = this.#namespace(name, noun, methods);
    }
    this.talks.streamMessages = (params, options) => this.#changes(params, options);
    this.talks.addAttachment = (params, options) => this.#http.upload(params, options);
    this.talks.getAttachment = (params, options) => this.#http.download(params, options);
    this.mail.follow = (params, options) => this.#fromNow("mail", () => this.mail.arrivals({ limit: 1 }), params, options);
    this.monitor.follow = (params, options) =>
      this.#fromNow("monitor", () => this.monitor.facts({ limit: 1 }), params, options);
    this.agents.follow = (params, options) =>
      this.#fromNow("agents", () => this.monitor.facts({ limit: 1 }), params, options);
    this.meetings.watch = (params, options) => this.#contents({ ...params, topic: "meeting" }, options);
  }

  /** Return the user of the token, the role of the account, and the scopes. */
  me(options) {
    return this.#connection.call("me", {}, AGAIN, options);
  }

  /** Call any method of JSON-RPC by its name. */
  call(method, params = {}, options = {}) {
    return this.#connection.call(method, params, ONCE, options);
  }

  /** Yield the events of a topic with their cursors; resume after the last one when the connection was lost. */
  async *subscribe(params, { signal } = {}) {
    const subscription = this.#connection.subscribe(params, signal);
    try {
      for (let event = await subscription.next(); event !== null; event = await subscription.next()) yield event;
    } finally {
      subscription.close();
    }
  }

  /** Close the connection. Calls and streams in progress fail. */
  close() {
    this.#connection.close();
  }

  [Symbol.dispose ?? Symbol.for("dispose")]() {
    this.close();
  }

  #namespace(name, noun, methods) {
    const made = {};
    for (const [method, repeat] of Object.entries(methods)) {
      const call = (params = {}, options = {}) => {
        const given = repeat === KEYED && params.key == null ? { ...params, key: newKey() } : params;
        return this.#connection.call(`${noun}.${method}`, given, repeat, options);
      };
      made[method] = method === "wait" ? waiting(call, IS_OVER[name]) : call;
    }
    return made;
  }

  async *#contents(params, options) {
    for await (const { event } of this.subscribe(params, options)) yield event;
  }

  /** Yield what happens from now on: the cursor of now is read first, so that nothing is missed while reconnecting. */
  async *#fromNow(topic, newest, { after = null, ...params } = {}, options = {}) {
    const cursor = after ?? (await newest()).cursor;
    yield* this.#contents({ ...params, topic, after: cursor }, options);
  }

  async *#changes({ talkSessionId, after = null, follow = false }, options = {}) {
    const known = new Map();
    const load = async (seq) =>
      (await this.talks.getMessages({ talkSessionId, before: seq + 1, limit: 1 }, options)).messages.at(-1);
    for await (const { cursor, event } of this.subscribe({ topic: "talk", talkSessionId, after, follow }, options)) {
      const { seq, status } = event.message;
      const text = await continued(known.get(seq), event, load);
      known.delete(seq);
      if (status === "streaming") known.set(seq, text);
      const message = { ...event.message, content: text.content, notes: text.notes };
      yield { message, text: event.text, cursor, reset: event.reset, notes: event.notes };
    }
  }
}

/** Return the whole text of a message after a change, of which the server sends only the new part. */
async function continued(before, event, load) {
  const added = { content: event.text, length: lengthOf(event.text), notes: event.notes, noted: lengthOfNotes(event.notes) };
  if (event.reset) return added;
  let known = before ?? { content: "", length: 0, notes: [], noted: 0 };
  if (known.length !== event.offset || known.noted !== event.noted) {
    const { content, notes } = await load(event.message.seq); // the cursor lies inside of a text
    known = { content: start(content, event.offset), length: event.offset, notes: until(notes, event.noted), noted: event.noted };
  }
  return {
    content: known.content + added.content,
    length: known.length + added.length,
    notes: joined([...known.notes, ...added.notes]),
    noted: known.noted + added.noted,
  };
}

/** Count characters as the server does: code points, not UTF-16 units. */
function lengthOf(text) {
  let length = text.length;
  for (let index = 0; index < text.length - 1; index++) {
    if (text.charCodeAt(index) >= 0xd800 && text.charCodeAt(index) < 0xdc00) length--;
  }
  return length;
}

function lengthOfNotes(notes) {
  return notes.reduce((sum, note) => sum + lengthOf(note.text), 0);
}

function start(text, length) {
  return lengthOf(text) === length ? text : Array.from(text).slice(0, length).join("");
}

function until(notes, length) {
  const kept = [];
  for (const note of notes) {
    if (length <= 0) break;
    kept.push({ ...note, text: start(note.text, Math.min(length, lengthOf(note.text))) });
    length -= lengthOf(note.text);
  }
  return kept;
}

/** Join adjacent notes of one channel. */
function joined(notes) {
  const found = [];
  for (const note of notes) {
    const last = found.at(-1);
    if (last?.channel === note.channel) found[found.length - 1] = { ...last, text: last.text + note.text };
    else found.push(note);
  }
  return found;
}

/** Repeat a waiting request until it has a result or the timeout is over: one request waits a bounded time. */
function waiting(call, isOver) {
  return async ({ timeout = null, ...params } = {}, options = {}) => {
    const latest = timeout === null ? Infinity : Date.now() + timeout * 1000;
    for (;;) {
      const wanted = Math.min(LONGEST_WAIT, Math.max(0, (latest - Date.now()) / 1000));
      const asked = Date.now();
      const found = await call({ ...params, timeout: wanted }, options);
      if (isOver(found, params) || wanted < LONGEST_WAIT) return found;
      if (Date.now() - asked < (LONGEST_WAIT * 1000) / 2) await sleep(1000, options.signal); // the server is closing
    }
  };
}

function newKey() {
  return globalThis.crypto.randomUUID();
}

function sleep(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
  });
}

// --- the connection --------------------------------------------------------------------------------

/** One WebSocket for all requests and subscriptions, opened on demand and again when it was lost. */
class Connection {
  #http;
  #patience;
  #socket = null;
  #isOpen = false;
  #isClosed = false;
  #calls = new Map();
  #subscriptions = new Set();
  #names = new Map(); // subscriptions by their name on this connection
  #number = 0;
  #awaySince = null;
  #failures = 0;
  #retry = null;
  #watch = null;
  #isSilent = false;

  constructor(http, patience) {
    this.#http = http;
    this.#patience = patience;
  }

  call(method, params, repeat, { signal } = {}) {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw closed();
      signal?.throwIfAborted();
      const id = ++this.#number;
      const text = JSON.stringify({ jsonrpc: "2.0", id, method, params });
      const abort = () => this.#cancel(id, signal.reason);
      const settle = (end) => (value) => {
        signal?.removeEventListener("abort", abort);
        this.#calls.delete(id);
        end(value);
      };
      signal?.addEventListener("abort", abort, { once: true });
      this.#calls.set(id, { text, repeat, losses: 0, isSent: false, resolve: settle(resolve), reject: settle(reject) });
      this.#flush();
    });
  }

  subscribe(params, signal) {
    if (this.#isClosed) throw closed();
    signal?.throwIfAborted();
    const subscription = new Subscription(this, params, signal);
    this.#subscriptions.add(subscription);
    this.#flush();
    return subscription;
  }

  /** Open a subscription on the present connection, under a new name: events of the old name are ignored. */
  resume(subscription) {
    if (!this.#isOpen || !subscription.isWanted) return;
    const name = `c${++this.#number}`;
    this.#names.set(name, subscription);
    subscription.name = name;
    const params = { ...subscription.params, after: subscription.cursor, subscription: name };
    this.call("subscribe", params, ONCE).then(
      () => (subscription.isAllowed = true),
      (error) => this.#refused(subscription, name, error),
    );
  }

  pause(subscription) {
    const name = subscription.name;
    this.#names.delete(name);
    subscription.name = null;
    if (this.#isOpen && name !== null) this.call("unsubscribe", { subscription: name }, ONCE).catch(() => {});
  }

  forget(subscription) {
    this.pause(subscription);
    this.#subscriptions.delete(subscription);
  }

  close() {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    this.#failAll(closed());
    this.#drop()?.close();
  }

  #cancel(id, reason) {
    const call = this.#calls.get(id);
    call.reject(reason);
    if (this.#isOpen && call.isSent) this.#notify("$/cancelRequest", { id });
  }

  #notify(method, params) {
    this.#socket.send(JSON.stringify({ jsonrpc: "2.0", method, params }));
  }

  #refused(subscription, name, error) {
    if (subscription.name !== name) return; // the connection was lost, and it is resumed on the next one
    this.#names.delete(name);
    subscription.name = null;
    const mayRecover = ["unavailable", "limit_reached"].includes(error.code) && subscription.isAllowed;
    if (!mayRecover || this.#isClosed) return subscription.end(error);
    this.#awaySince ??= Date.now();
    if (Date.now() - this.#awaySince > this.#patience) return subscription.end(error);
    setTimeout(() => subscription.name === null && this.resume(subscription), this.#pauseLength());
  }

  /** Send what waits; open the connection first if there is none. */
  #flush() {
    if (this.#isOpen) {
      for (const call of this.#calls.values()) {
        if (call.isSent) continue;
        call.isSent = true;
        this.#socket.send(call.text);
      }
      for (const subscription of this.#subscriptions) if (subscription.name === null) this.resume(subscription);
    } else if (this.#socket === null && this.#retry === null) {
      this.#open();
    }
  }

  #open() {
    let socket;
    try {
      socket = this.#socket = this.#http.socket();
    } catch (cause) {
      return this.#failAll(unavailable(`this program cannot connect to ${this.#http.origin}: ${cause.message}`, cause));
    }
    this.#watch = setTimeout(() => this.#giveUp(), this.#longestAttempt);
    socket.onopen = () => {
      clearTimeout(this.#watch);
      this.#isOpen = true;
      this.#watch = setInterval(() => this.#check(), SILENCE);
      this.#watch.unref?.();
      this.#flush();
    };
    socket.onmessage = ({ data }) => this.#received(data);
    socket.onclose = (event) => this.#lost(event);
    // Usually `close` follows; not if the page forbids the connection.
    socket.onerror = () => socket === this.#socket && socket.readyState === WebSocket.CLOSED && this.#lost({ code: 1006 });
  }

  /** Let go of the socket, and return it. */
  #drop() {
    const socket = this.#socket;
    if (socket !== null) socket.onopen = socket.onmessage = socket.onclose = null;
    clearInterval(this.#watch);
    this.#socket = null;
    this.#isOpen = this.#isSilent = false;
    this.#names.clear();
    for (const subscription of this.#subscriptions) subscription.name = null;
    return socket;
  }

  /** Ask the server for a reply if it was silent; give the connection up if it does not reply. */
  #check() {
    if (this.#calls.size === 0 && this.#subscriptions.size === 0) return;
    if (this.#isSilent) return this.#giveUp();
    this.#isSilent = true;
    this.call("me", {}, ONCE).catch(() => {});
  }

  #giveUp() {
    const socket = this.#socket;
    this.#lost({ code: 1006 });
    socket.close();
  }

  get #longestAttempt() {
    return Math.min(CONNECTING, Math.max(this.#patience, 1000));
  }

  async #lost({ code }) {
    const wasOpen = this.#isOpen;
    this.#drop();
    const reason = CLOSE_ERRORS[code] ?? "the connection was lost";
    for (const call of [...this.#calls.values()]) {
      if (!call.isSent) continue;
      call.isSent = false;
      if (call.repeat === ONCE) call.reject(unavailable(`${reason}: the request may have been done`));
      else if (++call.losses === MOST_LOSSES) call.reject(unavailable(`${reason}, several times during this request`));
    }
    if (this.#calls.size === 0 && this.#subscriptions.size === 0) return;
    this.#awaySince ??= Date.now();
    const refusal = !wasOpen || code === 1008 ? await this.#http.refusal(this.#longestAttempt) : null;
    if (this.#isClosed || this.#socket !== null) return;
    if (refusal !== null) this.#failAll(refusal);
    else if (Date.now() - this.#awaySince > this.#patience) this.#failAll(unavailable(`cannot reach ${this.#http.origin}`));
    else this.#retry = setTimeout(() => { this.#retry = null; this.#open(); }, this.#pauseLength());
  }

  /** Return the time until the next attempt: exponential backoff with jitter. */
  #pauseLength() {
    const longest = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** Math.min(this.#failures++, 10));
    return longest * (0.5 + Math.random() / 2);
  }

  #failAll(error) {
    this.#awaySince = null;
    this.#failures = 0;
    for (const call of [...this.#calls.values()]) call.reject(error);
    for (const subscription of [...this.#subscriptions]) subscription.end(error);
  }

  #received(data) {
    this.#isSilent = false;
    let message;
    try {
      message = JSON.parse(data);
    } catch (error) {
      const socket = this.#socket;
      this.#drop();
      this.#failAll(unavailable(`${this.#http.origin} is not a Roost: it sends no JSON`, error));
      return socket.close();
    }
    this.#awaySince = null;
    this.#failures = 0;
    if (message?.method === "event") return this.#names.get(message.params?.subscription)?.put(message.params);
    if (message?.method === "ended") return this.#ended(message.params ?? {});
    const call = this.#calls.get(message?.id);
    if (!message?.error) call?.resolve(message?.result);
    else if (call?.repeat === GONE && call.losses > 0 && message.error.code === 404) call.resolve(null);
    else call?.reject(errorOf(message.error));
  }

  #ended({ subscription: name, error }) {
    const subscription = this.#names.get(name);
    this.#names.delete(name);
    subscription?.end(error ? errorOf(error) : null);
  }
}

/** Stream of events, from any number of connections. */
class Subscription {
  name = null; // on the present connection
  isAllowed = false;
  #connection;
  #signal;
  #events = [];
  #error = undefined; // null at the regular end
  #reader = null;
  #isFull = false;
  #abort = () => this.end(this.#signal.reason);

  constructor(connection, { after = null, ...params }, signal) {
    this.#connection = connection;
    this.params = params;
    this.cursor = after;
    this.#signal = signal;
    signal?.addEventListener("abort", this.#abort, { once: true });
  }

  get isWanted() {
    return this.#error === undefined && !this.#isFull;
  }

  put({ cursor, event }) {
    this.cursor = cursor;
    this.#events.push({ cursor, event });
    if (this.#events.length >= BUFFERED) {
      this.#isFull = true; // its reader is slow: read the rest later, after this cursor
      this.#connection.pause(this);
    }
    this.#wake();
  }

  end(error) {
    if (this.#error !== undefined) return;
    this.#error = error;
    if (error !== null && error === this.#signal?.reason) this.#events = [];
    this.#connection.forget(this);
    this.#wake();
  }

  /** Return the next event; null at the end. Errors come after the events that arrived before them. */
  async next() {
    while (this.#events.length === 0) {
      if (this.#error === null) return null;
      if (this.#error !== undefined) throw this.#error;
      if (this.#isFull) {
        this.#isFull = false;
        this.#connection.resume(this);
      }
      await new Promise((resolve) => (this.#reader = resolve));
    }
    return this.#events.shift();
  }

  close() {
    this.#signal?.removeEventListener("abort", this.#abort);
    this.#events = [];
    this.end(null);
  }

  #wake() {
    this.#reader?.();
    this.#reader = null;
  }
}

// --- HTTP ------------------------------------------------------------------------------------------

/** Address and token of the server: for the WebSocket, and for files. */
class Http {
  #url;
  #headers;

  constructor(url, token) {
    try {
      this.#url = new URL(url);
    } catch (cause) {
      throw new RoostError("invalid", `the URL ${JSON.stringify(url)} is not that of a server`, { cause });
    }
    if (this.#url.username || this.#url.password) {
      throw new RoostError("invalid", "the URL has a user name or a password: leave them out, and pass a token");
    }
    if (!["http:", "https:"].includes(this.#url.protocol)) {
      throw new RoostError("invalid", `the URL ${url} is not that of a server: use http://host:port`);
    }
    this.#headers = token ? { Authorization: `Bearer ${token}` } : {};
  }

  get origin() {
    return this.#url.origin;
  }

  socket() {
    if (typeof WebSocket === "undefined") throw new Error("it has no WebSocket: use Node 22 or newer, or a browser");
    const url = this.#at("/rpc");
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    // Browsers cannot send a header with a WebSocket: there the cookie signs in, on pages of the server itself.
    return this.#headers.Authorization ? new WebSocket(url, { headers: this.#headers }) : new WebSocket(url);
  }

  /** Return the error with which the server refuses this client; null if it does not, or cannot be reached. */
  async refusal(milliseconds) {
    try {
      const response = await this.#fetch("/api/v1/me", { signal: AbortSignal.timeout(milliseconds) });
      return response.status >= 400 && response.status < 500 && response.status !== 429 ? problemOf(response) : null;
    } catch {
      return null;
    }
  }

  async upload({ name, data }, { signal } = {}) {
    const headers = { "Content-Type": "application/octet-stream" };
    const path = `/api/v1/attachments?name=${encodeURIComponent(name)}`;
    return (await this.#done(path, { method: "POST", body: data, headers, signal })).json();
  }

  async download({ attachmentId }, { signal } = {}) {
    const response = await this.#done(`/api/v1/attachments/${encodeURIComponent(attachmentId)}`, { signal });
    return new Uint8Array(await response.arrayBuffer());
  }

  async #done(path, options) {
    let response;
    try {
      response = await this.#fetch(path, options);
    } catch (cause) {
      options.signal?.throwIfAborted();
      throw unavailable(`cannot reach ${this.origin}`, cause);
    }
    if (!response.ok) throw await problemOf(response);
    return response;
  }

  #fetch(path, { headers = {}, ...options }) {
    // Redirects are not followed: the token is for this server alone.
    return fetch(this.#at(path), { redirect: "error", headers: { ...this.#headers, ...headers }, ...options });
  }

  #at(path) {
    const [pathname, search = ""] = path.split("?");
    const url = new URL(this.#url);
    url.pathname = url.pathname.replace(/\/$/, "") + pathname;
    url.search = search;
    url.hash = "";
    return url;
  }
}

async function problemOf(response) {
  const problem = await response.json().catch(() => ({}));
  const detail = problem.detail ?? `the server returned status ${response.status}`;
  const code = response.status === 401 ? "forbidden" : problem.code;
  return new RoostError(code ?? "unavailable", detail, { status: response.status, reference: problem.reference });
}

function errorOf({ code, message, data }) {
  const name = data?.code ?? CODES[code] ?? "internal";
  return new RoostError(String(name), message, { status: code, reference: data?.reference });
}

function unavailable(message, cause) {
  return new RoostError("unavailable", message, { cause });
}

function closed() {
  return unavailable("this client is closed");
}
