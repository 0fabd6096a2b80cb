"""The contracts between the runtime and the world: time, threads, store, brains.

Adapters live in `hosts`, `stores` and `brains`; the runtime knows only what stands here.
"""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeVar

from roost.core import wake
from roost.core.agents import Agent, AgentChange, AgentConfig
from roost.core.envelopes import (
    Change,
    DeadLetter,
    Effect,
    Envelope,
    Recorded,
    SendMail,
    SendTask,
    Taken,
    WorkClosing,
    WorkSettled,
)
from roost.core.events import Event
from roost.core.health import RunRecord
from roost.core.mail import Mail, MailStatus
from roost.core.memories import RECALLED, Memory
from roost.core.messages import Message
from roost.core.metrics import Histogram
from roost.core.runs import Claimed, Closing, Halted, Loaded, Opened, Posted, Settled
from roost.core.schedules import Fired, Schedule
from roost.core.talks import Talk
from roost.core.tasks import Task
from roost.errors import Invalid

T = TypeVar("T")
Row = Sequence[Any]
Params = Mapping[str, Any] | Sequence[Any]


# --- time and threads -----------------------------------------------------------------------------


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since 1970, as people's clocks show them; may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds since some moment; never jumps. For durations."""
        ...


class Pending(Protocol[T]):
    """A result that comes later, set once from any thread.

    Awaited on an event loop, or, inside a driven coroutine, waited for on a plain thread.
    """

    @property
    def done(self) -> bool: ...

    def set(self, value: T) -> None:
        """The first `set` or `fail` counts; later ones change nothing."""
        ...

    def fail(self, error: BaseException) -> None: ...

    def __await__(self) -> Generator[Any, Any, T]: ...

    def within(self, seconds: float) -> Awaitable[bool]:
        """Wait so long at the most; whether it is done. Raises nothing, cancels nothing."""
        ...


class Loop(Protocol):
    """A worker's event loop, as others see it."""

    name: str

    @property
    def over(self) -> Pending[None]:
        """Set when everything on it has ended."""
        ...

    def call(self, act: Callable[..., object], *args: object) -> None:
        """Call it on that loop soon, in order; from any thread. Nothing happens if the loop has ended."""
        ...

    def silence(self) -> float:
        """For how many seconds a sign of life has been awaited in vain. Asks for the next one."""
        ...

    def busy_with(self) -> str | None:
        """The name of the task the loop is inside of right now; of one that has ended, who has ended it."""
        ...

    def abandon(self) -> None:
        """Give it up: it is told to end when it can, and nobody waits for it."""
        ...

    def join(self) -> None:
        """Once it is over: return when nothing of it is left."""
        ...


class Pump(Protocol):
    """Something that calls one function whenever it was rung, one call at a time."""

    def ring(self) -> None: ...

    def close(self) -> None:
        """Return when the call under way has ended; none follows."""
        ...


class Host(Protocol):
    """What the runtime runs on: real threads, or one deterministic loop with virtual time."""

    @property
    def clock(self) -> Clock: ...

    def new_id(self, kind: str) -> str:
        """A new id `kind_…`, after all that were made here before."""
        ...

    def jitter(self) -> float:
        """A random number from 0 to 1."""
        ...

    def load(self) -> float | None:
        """The share of the machine's processors in use since it was last asked, from 0 to 1; None: not known."""
        ...

    def memory(self) -> float | None:
        """MiB of memory that this process has; None: not known."""
        ...

    def lock(self) -> AbstractContextManager[object]: ...

    def pending(self) -> Pending[Any]: ...

    def together(self) -> AbstractContextManager[object]:
        """Whatever is set, and called on loops, inside of it reaches each loop in one go at its end."""
        ...

    def pump(self, name: str, step: Callable[[], None]) -> Pump: ...

    def start_loop(
        self,
        name: str,
        main: Callable[[Loop], Coroutine[Any, Any, None]],
        ended: Callable[[Loop, BaseException | None], None],
    ) -> Loop:
        """Run `main` on a new loop. `ended` is called there when it is over, with its error if it crashed."""
        ...

    def run_blocking(self, name: str, act: Callable[[], None]) -> None:
        """Run it on a thread of its own, which nobody waits for. `act` raises nothing."""
        ...


# --- the store ------------------------------------------------------------------------------------


class Tx(Protocol):
    """What an operation is given: statements with `:name` parameters (or `?` in order), the same on every database."""

    for_update: str
    """Ends a SELECT whose rows must not change before the commit (empty where the writer is alone)."""

    def read(self, sql: str, params: Params = ...) -> list[Row]: ...

    def one(self, sql: str, params: Params = ...) -> Row | None: ...

    def write(self, sql: str, params: Params = ...) -> list[Row]:
        """Change something; what `RETURNING` gives."""
        ...

    def later(self, table: str, columns: tuple[str, ...], row: Sequence[Any], ending: str = "") -> None:
        """Insert this row, together with others: before a statement names the table, and with the commit at last."""
        ...


@dataclass(frozen=True, slots=True)
class Look:
    """A look at an agent: `anew`, by someone who does not work for it yet. The id is of what the look changes.

    `untried`: what counts as tried, and was not.
    """

    address: str
    anew: bool
    change_id: str
    untried: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class World:
    """What a look at agents needs to know of the world: the time and the load."""

    time: float
    cpu: float | None = None
    awake: int | None = None


@dataclass(frozen=True, slots=True)
class Pace:
    """How a store keeps up: what is queued, and how many operations there were to a commit."""

    queued_writes: int
    queued_reads: int
    batches: Histogram


class Store(Protocol):
    """The truth. An operation is a plain function `op(tx, …) -> result`.

    Operations are repeatable: a batch that fails is rolled back and its operations are done again one by
    one, so they change nothing but the database, and ids and times of the caller's are made outside.
    An operation that refuses raises a RoostError, best before it has written anything.
    """

    def write(
        self, op: Callable[..., T], *args: Any, key: str = "", then: Callable[[T], object] | None = None,
        failed: Callable[[Exception], object] | None = None,
    ) -> Pending[T]:  # fmt: skip
        """Do it in order with all others of the same key; settled after the commit. What is about agents has none, so
        that what was posted is handed over before anyone can look for it; talks have their own.

        `then` is called with the result after the commit, in the order of commits, before anyone who waits is
        told; `failed` with the error if it could not be done. They must be quick and must not wait. Raises
        Unavailable when too much is queued or the store is closed.
        """
        ...

    def read(self, op: Callable[..., T], *args: Any) -> Pending[T]:
        """Do it on a snapshot; sees what was committed before the call."""
        ...

    def pace(self) -> Pace:
        """How it keeps up."""
        ...

    def close(self) -> None:
        """Do what is queued, then let go of the database."""
        ...


class TalkStatements(Protocol):
    """Talks themselves. A talk that is not this user's is `NotFound`, as is one that does not exist."""

    def create(
        self,
        tx: Tx,
        talk_id: str,
        user_id: str,
        profile: str,
        busy: str,
        title: str,
        options: str,
        most: int,
        agent: str = ...,
        /,
    ) -> Loaded:
        """Raises LimitReached when the user has `most` talks already."""
        ...

    def get(self, tx: Tx, user_id: str, talk_id: str, /) -> Talk: ...

    def listed(self, tx: Tx, user_id: str, limit: int, before: str | None, /) -> list[Talk]:
        """The user's talks, last used first; with `before` those that come after that one in this order."""
        ...

    def change(self, tx: Tx, user_id: str, talk_id: str, values: Mapping[str, str], /) -> Talk:
        """Set `title`, `profile`, `busy` or `options`."""
        ...

    def delete(self, tx: Tx, user_id: str, talk_id: str, /) -> None:
        """With everything that belongs to it."""
        ...

    def load(self, tx: Tx, user_id: str, talk_id: str, tail: int, /) -> Loaded: ...


class MessageStatements(Protocol):
    def post(
        self, tx: Tx, user_id: str, talk_id: str, content: str, key: str | None, busy: str | None, title: str,
        envelope_id: str, quiet: float, most: int, /,
    ) -> Posted:  # fmt: skip
        """Add a person's message and its envelope, and supersede the run of the lane where the policy says so.

        The same key again gives the message that is there and changes nothing; with other content it is a
        Conflict. Raises Busy where the policy is `reject` and the talk is being answered, LimitReached when
        `most` messages wait.
        """
        ...

    def before(self, tx: Tx, user_id: str, talk_id: str, seq: int, limit: int, /) -> list[Message]:
        """The messages just before `seq`, in order."""
        ...

    def changed(self, tx: Tx, user_id: str, talk_id: str, revision: int, position: int, limit: int, /) -> list[Message]:
        """What was changed after `revision`, in order of number, after the message `position`."""
        ...


class RunStatements(Protocol):
    """What runs write. Each proves by the talk's epoch that it still may."""

    def open_answer(self, tx: Tx, talk_id: str, run_id: str, epoch: int, content: str, /) -> Opened | None:
        """Give the run's answer its number, with its first words; one that has its number keeps it.

        None: the run was superseded before it said any.
        """
        ...

    def checkpoint(self, tx: Tx, talk_id: str, run_id: str, epoch: int, part: int, content: str, /) -> None:
        """Keep what was said since the last checkpoint, as part 1, 2, 3 …

        Nothing happens if the run was superseded, or if the part before could not be kept.
        """
        ...

    def split_answer(self, tx: Tx, talk_id: str, run_id: str, epoch: int, content: str, /) -> Settled:
        """End the message being written, while its run goes on in a new one."""
        ...

    def settle(self, tx: Tx, closing: Closing, /) -> Settled:
        """End a run: its message, its envelopes, its record and the talk's state, all at once.

        A superseded run may close the message it had opened, as interrupted, and nothing else; if it had
        not opened one, its envelopes stay for the run that comes after it.
        """
        ...

    def stop(self, tx: Tx, user_id: str, talk_id: str, /) -> Halted:
        """Supersede the run of a talk and drop all that waits for an answer there."""
        ...

    def unfinished(self, tx: Tx, after: str, limit: int, /) -> list[tuple[str, str, str]]:
        """Talks with something to handle or to close, by id: (talk, user, the agent it is with or nothing)."""
        ...

    def claim(self, tx: Tx, talk_id: str, /) -> Claimed | None:
        """Take a lane over: count the attempt, close what was being written, give the envelopes. None: no such talk."""
        ...


class AgentStatements(Protocol):
    """Agents themselves. One that is not this user's is `NotFound`, as is one that does not exist."""

    def create(
        self, tx: Tx, user_id: str, agent_ids: Sequence[str], config: AgentConfig, change: Change, most: int, /
    ) -> None:
        """All of them or none. Raises Conflict if one exists, LimitReached beyond `most`."""
        ...

    def get(self, tx: Tx, user_id: str, agent_id: str, /) -> Agent: ...

    def listed(self, tx: Tx, user_id: str, limit: int, after: str, state: str | None, /) -> list[Agent]:
        """By id, those after `after`."""
        ...

    def reach(self, tx: Tx, user_id: str, key: str, known: bool, /) -> tuple[AgentConfig, int]:
        """Of an agent to whom this user may send (one's own, or a shared one): its config, and how much waits."""
        ...

    def configure(self, tx: Tx, user_id: str, agent_id: str, config: str, /) -> Agent: ...

    def start(self, tx: Tx, user_id: str, agent_id: str, change: Change, /) -> bool:
        """False: it was not stopped."""
        ...

    def stop(self, tx: Tx, user_id: str, agent_id: str, change: Change, /) -> bool:
        """Whatever runs may write no more; what is in the inbox stays. False: it was stopped already."""
        ...

    def pause(self, tx: Tx, user_id: str, agent_id: str, paused: bool, /) -> bool: ...

    def sleep(self, tx: Tx, user_id: str, agent_id: str, condition: str, change: Change, /) -> None: ...

    def rewake(
        self, tx: Tx, user_id: str, agent_id: str, change: Callable[[wake.Condition], wake.Condition], /
    ) -> wake.Condition:
        """Change what a sleeper waits for. Raises Conflict if it does not sleep."""
        ...

    def rouse(self, tx: Tx, user_id: str, agent_id: str, change: Change, /) -> bool:
        """Wake it, whatever it waits for. False: it did not sleep."""
        ...

    def delete(self, tx: Tx, user_id: str, agent_id: str, /) -> list[str]:
        """With everything that belongs to it; the ids of its talks, which are gone too."""
        ...

    def history(self, tx: Tx, user_id: str, agent_id: str, limit: int, before: str, /) -> list[tuple[str, AgentChange]]:
        """The changes of its state, newest first, each with its id; those before `before`."""
        ...

    def unfinished(self, tx: Tx, after: str, limit: int, /) -> list[str]:
        """Agents with something in their inbox, by key."""
        ...

    def wanting_load(self, tx: Tx, limit: int, /) -> list[str]:
        """Sleepers that wait for a lower load."""
        ...


class InboxStatements(Protocol):
    """What is in inboxes. Whatever writes for an agent proves by its epoch that it still may."""

    def post(self, tx: Tx, effect: Effect, /) -> tuple[Envelope, ...]:
        """Send something; what it has put into inboxes. Raises NotFound if the recipient does not exist (any more)."""
        ...

    def post_now(
        self,
        tx: Tx,
        envelope_id: str,
        address: str,
        epoch: int,
        number: int,
        effects: tuple[Effect, ...],
        now: float,
        /,
    ) -> tuple[Envelope, ...] | None:
        """Send what a turn sends before it ends, and put it on record. None: it may not."""
        ...

    def ask(
        self, tx: Tx, envelope_id: str, address: str, epoch: int, number: int, effect: SendTask, now: float, /
    ) -> tuple[Envelope, ...] | None:
        """Send a request, and put on record that its answer is waited for. None: it may not."""
        ...

    def answer_to(self, tx: Tx, envelope_id: str, number: int, give_up: bool, /) -> str | None:
        """The answer to a request, as JSON; with `give_up` none is waited for from now on."""
        ...

    def begin_step(
        self, tx: Tx, envelope_id: str, address: str, epoch: int, number: int, name: str, now: float, /
    ) -> bool: ...

    def end_step(self, tx: Tx, envelope_id: str, address: str, epoch: int, number: int, result: str, /) -> None: ...

    def forget_step(self, tx: Tx, envelope_id: str, address: str, epoch: int, number: int, /) -> None: ...

    def take(self, tx: Tx, looks: tuple[Look, ...], world: World, /) -> tuple[Taken, ...]:
        """Look what agents have to do: wake those whom anything that is there wakes, and hand their work over.

        Where it is `anew`, whoever had it before may write no more. What was never tried is counted as tried now;
        what was, is counted when it is tried again.
        """
        ...

    def claim(self, tx: Tx, envelope: Envelope, epoch: int, /) -> tuple[int, tuple[Recorded, ...]] | None:
        """Count the try that is about to begin; how many that makes, and what earlier ones have on record.

        None: it is gone, or whoever asks may not have it any more.
        """
        ...

    def settle(
        self, tx: Tx, closings: tuple[WorkClosing, ...], full: frozenset[str] = ...,
        notes: tuple[tuple[str, Change], ...] = ..., /,
    ) -> tuple[WorkSettled, ...]:  # fmt: skip
        """End tries: of each the envelope, the record, the agent's memory and all that it sends, or nothing of it.

        What is sent to those who are `full` is not handed over: they fetch it when they have room. `notes` are
        changes of agents' states that come with no try.
        """
        ...


class TaskStatements(Protocol):
    def get(self, tx: Tx, user_id: str, task_id: str, /) -> Task: ...

    def by_key(self, tx: Tx, user_id: str, key: str, address: str, /) -> str | None:
        """The task that was sent with this key."""
        ...

    def listed(
        self, tx: Tx, user_id: str, address: str | None, status: str | None, limit: int, before: str, /
    ) -> list[Task]:
        """Newest first, those before `before`."""
        ...

    def cancel(self, tx: Tx, user_id: str, task_id: str, now: float, /) -> Task:
        """As it is then; one that is over stays as it is."""
        ...


class MailStatements(Protocol):
    """Mailboxes and mails that are not this user's are `NotFound`, as are those that do not exist.

    A mail belongs to both ends: to whoever owns the mailbox of its sender, or that of its recipient. A mailbox
    is `user:ann` or, of an agent, `agent:ann/d`.
    """

    def letter(self, tx: Tx, mail_id: str, /) -> Mail | None:
        """Whoever it belongs to: for the agent that is to read it."""
        ...

    def owned(self, tx: Tx, user_id: str, box: str, /) -> None:
        """Raises NotFound if this is no mailbox of theirs."""
        ...

    def send(self, tx: Tx, mail: SendMail, /) -> tuple[str, tuple[Envelope, ...]]:
        """Its id, and what it has put into inboxes. With a key that was used before: the id of the one that is there.

        Raises Conflict if that one says something else, NotFound if the recipient does not exist (any more).
        """
        ...

    def get(self, tx: Tx, user_id: str, mail_id: str, /) -> Mail: ...

    def listed(
        self, tx: Tx, user_id: str, box: str, status: MailStatus | None, archived: bool, limit: int,
        before: str | None, now: float, /,
    ) -> list[Mail]:  # fmt: skip
        """What is in a mailbox by rank, the urgent ones first; with `before` what comes after that one.

        Without a `status` the archived ones only if `archived`. What has expired is left out.
        """
        ...

    def unread(self, tx: Tx, user_id: str, box: str, now: float, /) -> int: ...

    def thread(self, tx: Tx, user_id: str, thread_id: str, /) -> list[Mail]:
        """All of it, in order, expired and archived ones too."""
        ...

    def read(self, tx: Tx, user_id: str, mail_id: str, now: float, /) -> Mail:
        """If it is unread, and the user is its recipient's owner, it is read now; otherwise it stays as it is."""
        ...

    def archive(self, tx: Tx, user_id: str, mail_id: str, /) -> Mail:
        """Raises Forbidden to those who have only sent it."""
        ...

    def check(self, tx: Tx, address: str, now: float, /) -> None:
        """An agent looks at its mail: all that waits for that is due."""
        ...


class TimerStatements(Protocol):
    """What is due by the clock. A schedule that is not this user's is `NotFound`, as is one that does not exist."""

    def next_due(self, tx: Tx, /) -> float | None:
        """When the next timer is due."""
        ...

    def fire(self, tx: Tx, now: float, /) -> Fired:
        """Do what is due: wake whom it wakes, post what schedules post, and advance the timers, all at once."""
        ...

    def create(
        self, tx: Tx, schedule_id: str, user_id: str, address: str, name: str, prompt: str, priority: str, rule: str,
        overlap: str, missed: str, catch_up: float, now: float, most: int, /,
    ) -> Schedule:  # fmt: skip
        """Raises Conflict if the agent has one of that name, LimitReached beyond `most`."""
        ...

    def get(self, tx: Tx, user_id: str, schedule_id: str, /) -> Schedule: ...

    def listed(self, tx: Tx, user_id: str, address: str | None, limit: int, after: str, /) -> list[Schedule]: ...

    def change(
        self, tx: Tx, user_id: str, schedule_id: str, values: dict[str, str | float | int], now: float, /
    ) -> Schedule:
        """A new rule counts from now. What would have come while it was paused is not missed."""
        ...

    def delete(self, tx: Tx, user_id: str, schedule_id: str, /) -> None:
        """What it has posted stays."""
        ...


class EventStatements(Protocol):
    def listed(
        self, tx: Tx, user_id: str, pattern: str | None, since: float | None, until: float | None, limit: int,
        before: str, /,
    ) -> list[Event]:  # fmt: skip
        """Newest first, those before `before`. Among them may be some that the pattern does not stand for."""
        ...


class LetterStatements(Protocol):
    """Dead letters. One that is not this user's is `NotFound`, as is one that does not exist."""

    def get(self, tx: Tx, user_id: str, letter_id: str, /) -> DeadLetter: ...

    def listed(
        self, tx: Tx, user_id: str, address: str | None, kind: str | None, limit: int, before: str, /
    ) -> list[DeadLetter]:
        """Newest first, those before `before`."""
        ...

    def names(
        self, tx: Tx, user_id: str, address: str | None, until: float, limit: int, after: str, /
    ) -> list[str]:  # fmt: skip
        """The ids of those there are until then, oldest first, after `after`."""
        ...

    def retry(self, tx: Tx, user_id: str, letter_id: str, now: float, /) -> tuple[Envelope, ...]:
        """Post it again and remove it: untried, and with as much time as it had; what it has put into inboxes.

        What is on record of earlier tries stays, but for steps of which it is not known whether they were done.
        Raises NotFound, Conflict or LimitReached if it cannot be posted; then it stays as it is.
        """
        ...

    def drop(self, tx: Tx, user_id: str, letter_id: str, /) -> None: ...


class MemoryStatements(Protocol):
    """What agents remember. An agent that is not this user's is `NotFound`, as is one that does not exist.

    The order of what is found is the same on every store: how much of what is wanted is in it (the characters of those
    words that are), and of equal ones the newest first.
    """

    def remember(
        self, tx: Tx, user_id: str, agent_id: str, key: str, text: str, now: float, most: int, /
    ) -> Memory:  # fmt: skip
        """In place of what is under the key, as the newest. Raises LimitReached beyond `most`."""
        ...

    def forget(self, tx: Tx, user_id: str, agent_id: str, key: str, /) -> bool:
        """False: there is none."""
        ...

    def listed(
        self, tx: Tx, user_id: str, agent_id: str, wanted: Sequence[str] | None, limit: int, before: str | None, /
    ) -> list[Memory]:
        """Those with any of the words; with None all, the newest first. With `before` what comes after that one."""
        ...

    def recalled(self, tx: Tx, address: str, wanted: Sequence[str] | None, limit: int, /) -> list[Memory]:
        """The same, for the agent itself."""
        ...

    def known(self, tx: Tx, address: str, key: str, /) -> tuple[bool, int]:
        """Whether there is one under the key, and how many there are."""
        ...


@dataclass(frozen=True, slots=True)
class Seen:
    """An agent as the store has it."""

    agent: Agent
    memory: str | None
    memories: int
    lanes: Mapping[str, int]
    timers: tuple[tuple[str, datetime], ...]
    changes: tuple[AgentChange, ...]
    runs: tuple[RunRecord, ...]


class WatchStatements(Protocol):
    """Agents as they are looked at. One that is not this user's is `NotFound`, as is one that does not exist."""

    def seen(self, tx: Tx, user_id: str, agent_id: str, limit: int, /) -> Seen:
        """Everything about it; so many of its changes and runs, the newest first."""
        ...

    def find(self, tx: Tx, user_id: str, text: str, limit: int, after: str, /) -> list[Agent]:
        """By id, those after `after` that have the text in their id or somewhere in their settings."""
        ...

    def set_memory(self, tx: Tx, user_id: str, agent_id: str, memory: str, /) -> None: ...


class RetentionStatements(Protocol):
    """What is over and too old. `old` looks, on a snapshot; `remove` looks again at each before it is gone."""

    def old(self, tx: Tx, kind: str, before: float, after: Sequence[str], limit: int, /) -> OldPage:
        """Look at so many, in the order of their keys, from `after` on; those of them that may go."""
        ...

    def remove(self, tx: Tx, kind: str, before: float, keys: Sequence[Sequence[str]], /) -> int:
        """Those that may still go, with all that belongs to them; how many that were."""
        ...


@dataclass(frozen=True, slots=True)
class OldPage:
    """Keys of what may go, and where to go on from; `()`: that was the last."""

    keys: tuple[tuple[str, ...], ...]
    following: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Statements:
    """All operations of the store, one set an aggregate."""

    talks: TalkStatements
    messages: MessageStatements
    runs: RunStatements
    agents: AgentStatements
    inbox: InboxStatements
    tasks: TaskStatements
    timers: TimerStatements
    mail: MailStatements
    events: EventStatements
    letters: LetterStatements
    memories: MemoryStatements
    watching: WatchStatements
    retention: RetentionStatements


Tracer = Callable[[str, Mapping[str, Any]], AbstractContextManager[dict[str, Any]]]
"""Around each run, if there is one: its name and attributes. What is put into its mapping is told at the end."""


# --- brains ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of what a brain says."""

    text: str


@dataclass(frozen=True, slots=True)
class Profile:
    """A named way to think. `brain` is a built-in's name or `module:function`."""

    name: str
    brain: str
    description: str = ""
    model: str | None = None
    temperature: float | None = None
    instructions: str | None = None


class Acts(Protocol):
    """What a turn can do to the world."""

    async def mail(self, to: str, subject: str, body: str, **options: Any) -> str: ...

    async def send(self, to: str, text: str, **options: Any) -> None: ...

    async def publish(self, name: str, data: Any, **options: Any) -> str: ...

    def sleep(
        self, seconds: float | None, until: datetime | float | None, wake_on: wake.Condition | None, /
    ) -> None: ...

    async def ask(self, to: str, text: str, deadline: float, priority: str) -> str: ...

    async def remember(self, text: str, key: str | None) -> str: ...

    async def recall(self, query: str, limit: int) -> tuple[Memory, ...]: ...

    async def forget(self, key: str) -> bool: ...

    async def step(self, name: str, act: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any: ...


class Hand(Protocol):
    """What a turn can do while it lasts; the runner's side of it."""

    @property
    def stopping(self) -> bool: ...

    @property
    def means(self) -> Acts: ...

    def take_steering(self) -> tuple[Message, ...]: ...


@dataclass(slots=True)
class Turn:
    """What a runner hands to a brain: what is new, what was before, and the means to act."""

    kind: str
    text: str
    messages: tuple[Message, ...]
    history: Sequence[Message]
    profile: Profile
    user_id: str
    talk_session_id: str
    run_id: str
    state: dict[str, Any] = field(default_factory=dict)
    """Kept with the agent, or with the talk; what JSON can hold. Written when the turn settles."""
    _hand: Hand | None = None
    agent_id: str | None = None
    """Which agent this is, if it is one."""
    sender: str = ""
    """The address of whoever sent what is new."""
    subject: str = ""
    """Of mail."""
    data: Any = None
    """Of an event."""
    attempt: int = 1
    """How often this was tried, this time included."""

    @property
    def stopping(self) -> bool:
        """Whether the run was asked to stop; a blocking brain looks at it between its steps."""
        return self._hand is not None and self._hand.stopping

    def steered(self) -> tuple[Message, ...]:
        """What the person said meanwhile with busy="steer"; what is yielded next answers it in a new message."""
        taken = self._hand.take_steering() if self._hand is not None else ()
        self.messages += taken
        return taken

    async def mail(self, to: str, subject: str, body: str, *, priority: str = "normal") -> str:
        """Write to a person or an agent; the mail's id. It leaves when the turn ends, or in a moment if it does not."""
        return await self._acts.mail(to, subject, body, priority=priority)

    async def send(self, to: str, text: str, *, priority: str = "normal") -> None:
        """Tell an agent something; what one agent sends to another is handled in the order of sending."""
        await self._acts.send(to, text, priority=priority)

    async def ask(self, to: str, text: str, *, deadline: float = 60.0, priority: str = "normal") -> str:
        """Ask an agent and wait for what it says; NoAnswer after so many seconds, or if it fails.

        An answer that comes later is delivered as a message that says so. Meanwhile the agent does other things.
        """
        return await self._acts.ask(to, text, deadline, priority)

    async def publish(
        self, name: str, data: Any = None, *, priority: str = "normal", optional: bool = False
    ) -> str:  # fmt: skip
        """Tell whoever subscribed; the event's id. With `optional` it does not matter if nobody has."""
        return await self._acts.publish(name, data, priority=priority, optional=optional)

    async def sleep(
        self, seconds: float | None = None, *, until: datetime | float | None = None,
        wake_on: wake.Condition | None = None,
    ) -> None:  # fmt: skip
        """Sleep when this turn has ended: for so long, until then, or until what is waited for."""
        self._acts.sleep(seconds, until, wake_on)

    async def step(self, name: str, act: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Do something outside once: its result is on record, and a repeated turn is given that instead."""
        return await self._acts.step(name, act, args, options)

    async def remember(self, text: str, *, key: str | None = None) -> str:
        """Have the agent remember this when the turn settles; its key, under which a newer text replaces it."""
        return await self._acts.remember(text, key)

    async def recall(self, query: str = "", *, limit: int = RECALLED) -> tuple[Memory, ...]:
        """What the agent remembers, with this turn's own: what has the most of the query first, then the newest.

        Any text is a query. An empty one gives the newest.
        """
        return await self._acts.recall(query, limit)

    async def forget(self, key: str) -> bool:
        """Have the agent forget what is under the key when the turn settles. False: nothing is."""
        return await self._acts.forget(key)

    @property
    def _acts(self) -> Acts:
        if self._hand is None:
            raise Invalid("this turn has no means to act: it was made by hand")
        return self._hand.means


AsyncBrain = Callable[[Turn], AsyncIterator["str | Chunk"]]
BlockingBrain = Callable[[Turn], Iterator["str | Chunk"]]
Brain = AsyncBrain | BlockingBrain


class Brains(Protocol):
    """Where a talk's profile is found, and the brain that belongs to it."""

    default: str

    def names(self) -> Sequence[Profile]: ...

    def profile(self, name: str) -> Profile:
        """Raises Invalid with the known names."""
        ...

    def loaded(self, profile: Profile) -> Brain | None:
        """Its brain, if it is at hand."""
        ...

    def load(self, profile: Profile) -> Brain:
        """Fetch its brain; may take long. Raises BrainFailed when it cannot be had."""
        ...
