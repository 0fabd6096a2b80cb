"""The operations of the store, by what they are about. Every one is a plain function of a transaction."""

from __future__ import annotations

from collections.abc import (
    Callable,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from roost.core import wake
from roost.core.agents import Agent, AgentChange, AgentConfig, State
from roost.core.diary import Entry, Place, Scope
from roost.core.envelopes import (
    Answered,
    Change,
    DeadLetter,
    Effect,
    Envelope,
    Publish,
    Request,
    SendMail,
    Taken,
    Told,
    WorkClosing,
    WorkSettled,
)
from roost.core.events import Event
from roost.core.health import RunRecord
from roost.core.mail import Mail, MailStatus
from roost.core.memories import Memory
from roost.core.messages import Message
from roost.core.runs import Claimed, Closing, Halted, Loaded, Opened, Posted, Settled
from roost.core.schedules import Fired, Schedule
from roost.core.steps import Recorded
from roost.core.talks import Talk
from roost.core.tasks import Task
from roost.ports.meetings import MeetingStatements
from roost.ports.steps import ApprovalStatements, RunBook, StepStatements
from roost.ports.store import Look, Tx, World


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

    def open_answer(
        self, tx: Tx, talk_id: str, run_id: str, epoch: int, content: str, notes: str = ..., /
    ) -> Opened | None:
        """Give the run's answer its number, with its first words and notes; one that has its number keeps it.

        None: the run was superseded before it said any.
        """
        ...

    def checkpoint(
        self, tx: Tx, talk_id: str, run_id: str, epoch: int, part: int, content: str, notes: str = ..., /
    ) -> None:
        """Keep what was said since the last checkpoint, as part 1, 2, 3 …

        Nothing happens if the run was superseded, or if the part before could not be kept.
        """
        ...

    def split_answer(self, tx: Tx, talk_id: str, run_id: str, epoch: int, content: str, notes: str = ..., /) -> Settled:
        """End the message being written, while its run goes on in a new one."""
        ...

    def settle(self, tx: Tx, closing: Closing, /) -> Settled:
        """End a run: its message, its envelopes, its record and the talk's state, all at once.

        A superseded run may close the message it had opened, as interrupted, and nothing else; if it had
        not opened one, or had said nothing but notes, its envelopes stay for the run that comes after it.
        """
        ...

    def rest(self, tx: Tx, closing: Closing, /) -> Settled:
        """Put a run to rest that waits for a person: its answer stays open, and all of the lane waits with it.

        What it is about is `left`, to be run again at once, if they have decided meanwhile.
        """
        ...

    def stop(self, tx: Tx, user_id: str, talk_id: str, /) -> Halted:
        """Supersede the run of a talk and drop all that waits for an answer there."""
        ...

    def unfinished(self, tx: Tx, after: str, limit: int, /) -> list[tuple[str, str, str]]:
        """Talks with something to handle or to close, by id: (talk, user, the agent it is with or nothing)."""
        ...

    def used(self, tx: Tx, day: str, profile: str, /) -> int:
        """How many tokens the profile has used on that day, by the runs that are settled."""
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

    def audience(
        self, tx: Tx, user_id: str, group: str | None, limit: int, after: str, /
    ) -> list[tuple[str, State, AgentConfig]]:  # fmt: skip
        """By id, those after `after`, as they rest; with a group all that are in it are among them."""
        ...

    def depths(self, tx: Tx, keys: Sequence[str], most: int, /) -> dict[str, int]:
        """How much waits for each of them, counted up to `most`."""
        ...

    def configure(self, tx: Tx, user_id: str, agent_id: str, config: str, /) -> Agent: ...

    def start(self, tx: Tx, user_id: str, agent_id: str, change: Change, /) -> Told | None:
        """It comes back to the meetings that it has left by being stopped. None: it was not stopped."""
        ...

    def stop(self, tx: Tx, user_id: str, agent_id: str, change: Change, news: Publish, /) -> Told | None:
        """Whatever runs may write no more; what is in the inbox stays. None: it was stopped already.

        Those who wait for an answer of its are told that there will be none, those it meets that it has left, and all
        others by the news.
        """
        ...

    def restart(self, tx: Tx, user_id: str, agent_id: str, stopped: Change, started: Change, /) -> tuple[bool, Told]:
        """Whatever runs may write no more, and it begins anew: what waits for it goes on waiting.

        Whether it was not stopped already; and what others were told of its start if it was.
        """
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

    def delete(self, tx: Tx, user_id: str, agent_id: str, news: Publish | None = ..., /) -> Told:
        """With everything that belongs to it, its talks too; others are told as by `stop`."""
        ...

    def history(self, tx: Tx, user_id: str, agent_id: str, limit: int, before: str, /) -> list[AgentChange]:
        """The changes of its state, newest first; those before `before`."""
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
        step: int,
        effects: tuple[Effect, ...],
        numbers: tuple[int, ...],
        now: float,
        given: Mapping[str, Any] | None = ...,
        /,
    ) -> tuple[Envelope, ...] | None:
        """Send what a turn sends before it ends, and put each on record under its number. None: it may not."""
        ...

    def ask(
        self, tx: Tx, requests: tuple[Request, ...], full: frozenset[str] = ..., /
    ) -> tuple[bool | Answered | None, ...]:  # fmt: skip
        """Post requests, and put on record that their answers are waited for; `full` as for `settle`.

        Of each whether it was posted: False if whom it asks does not exist (any more), None if its turn may not ask.
        One who is stopped is not asked: that is the answer.
        """
        ...

    def answer_to(self, tx: Tx, envelope_id: str, number: int, give_up: bool, /) -> str | None:
        """The answer to a request, as JSON; with `give_up` none is waited for from now on."""
        ...

    def take(self, tx: Tx, looks: tuple[Look, ...], world: World, /) -> tuple[Taken, ...]:
        """Look what agents have to do: wake those whom anything that is there wakes, and hand their work over.

        Where it is `anew`, whoever had it before may write no more. What was never tried is counted as tried now;
        what was, is counted when it is tried again. Whose profile the world does not know is left as it is.
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
        """Newest first, those before `before`. For `status` all are queued that are not over."""
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
        self, tx: Tx, user_id: str, box: str, status: MailStatus | None, archived: bool, newest: bool, limit: int,
        before: str | None, now: float, /,
    ) -> list[Mail]:  # fmt: skip
        """What is in a mailbox by rank, the urgent ones first, or with `newest` the newest first.

        With `before` what comes after that one.

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


class DiaryStatements(Protocol):
    """What brains note for themselves. It is written with the end of a turn, and forgotten with its talk or agent."""

    def read(self, tx: Tx, place: Place, app: str, limit: int, /) -> tuple[list[Entry], dict[Scope, dict[str, str]]]:
        """The newest entries, in the order of their turns, and all values."""
        ...


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
    diary: DiaryStatements
    watching: WatchStatements
    retention: RetentionStatements
    steps: StepStatements
    approvals: ApprovalStatements
    runbook: RunBook
    meetings: MeetingStatements
