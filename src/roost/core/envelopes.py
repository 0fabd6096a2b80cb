"""Envelopes: what is in an agent's inbox, what is sent, and what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from roost.core.addresses import parse
from roost.core.diary import Written
from roost.core.meetings.effects import MeetingChange, MeetingEffect
from roost.core.memories import Remember
from roost.core.priority import Priority
from roost.core.records import record
from roost.core.usage import NOTHING, Usage


class Kind(StrEnum):
    TALK = "talk"
    TASK = "task"
    MAIL = "mail"
    EVENT = "event"
    MEETING = "meeting"


@record(frozen=True, slots=True)
class Envelope:
    """One thing in an inbox. `lane`: handled one at a time and in order with all others that name it.

    `body` is the prompt of a task, the id of a mail, the id of an event.
    """

    envelope_id: str
    address: str
    kind: Kind
    lane: str
    priority: Priority
    sender: str
    body: str
    created: float
    rank: float
    due: float = 0.0
    attempts: int = 1
    most_attempts: int = 3
    retry_delay: float = 1.0
    expires: float | None = None
    hops: int = 0
    recorded: bool = False
    """Whether it is a task that is kept, with its result, when it is done."""
    ask: str | None = None
    """The request that waits for what is said about this."""
    claimed: bool = True
    """Whether the try that is about to begin is counted already, here and in the store."""
    root: str = ""
    """The id of that with which it all began; empty: it began with this."""

    @property
    def origin(self) -> str:
        return self.root or self.envelope_id


# --- what is sent, by people and by turns alike ------------------------------------------------------


@record(frozen=True, slots=True)
class SendTask:
    """A task. With `key` the same one again changes nothing. Of a schedule: the tick of `schedule_id`."""

    envelope: Envelope
    key: str | None = None
    schedule_id: str | None = None


@record(frozen=True, slots=True)
class SendMail:
    """A letter to a person (no envelope) or to an agent."""

    mail_id: str
    thread_id: str | None
    sender: str
    recipient: str
    subject: str
    body: str
    priority: Priority
    created: float
    expires: float | None
    reply_to: str | None
    key: str | None
    envelope: Envelope | None
    check_by: float | None = None
    """When the agent looks at its mail at the latest, if this does not wake it."""
    hops: int = 0
    root: str = ""

    @property
    def origin(self) -> str:
        return self.root or self.mail_id


@record(frozen=True, slots=True)
class Publish:
    """A fact for whoever subscribed. Unless `optional`, one that nobody takes is a dead letter."""

    event_id: str
    user_id: str
    name: str
    data: Any
    priority: Priority
    publisher: str
    created: float
    hops: int = 0
    optional: bool = False
    root: str = ""


def urgent_mail(m: SendMail) -> Publish | None:
    """What those hear whose owner got it, if it is urgent; its id is the mail's, so that it is told once."""
    if m.priority is not Priority.URGENT:
        return None
    data = {"mail_id": m.mail_id, "to": m.recipient, "from": m.sender, "subject": m.subject}
    return Publish(
        f"event_{m.mail_id.removeprefix('mail_')}", parse(m.recipient, "").user_id, "urgent_mail", data, m.priority,
        m.sender, m.created, m.hops, optional=True, root=m.origin,
    )  # fmt: skip


@record(frozen=True, slots=True)
class Broadcast:
    """The same message to many agents, each in an envelope of its own."""

    broadcast_id: str
    sender: str
    envelopes: tuple[Envelope, ...]
    crowded: tuple[Envelope, ...] = ()
    """For those whose inboxes are full: these become dead letters."""


Effect = SendTask | SendMail | Publish | Remember | Broadcast | MeetingEffect


def messages(effect: Effect) -> tuple[Envelope, ...]:
    """The envelopes of what is put into inboxes as it is: tasks and broadcasts."""
    if type(effect) is SendTask:
        return (effect.envelope,)
    return effect.envelopes if type(effect) is Broadcast else ()


@record(frozen=True, slots=True)
class Request:
    """What a turn of an agent asks another one, and the number under which it is on record."""

    envelope_id: str
    address: str
    epoch: int
    number: int
    envelope: Envelope
    """What the other one gets."""


def request_name(address: str, envelope_id: str, number: int) -> str:
    """By what a request is known: who asks, in which turn, and the number under which it is on record there."""
    return f"{number} {envelope_id} {address}"


def request_parts(name: str) -> tuple[str, str, int]:
    number, envelope_id, address = name.split(" ", 2)
    return address, envelope_id, int(number)


@record(frozen=True, slots=True)
class Answered:
    """A request that has its answer now: `text`, or why there is none, `error`."""

    request: str
    answer: Mapping[str, str]


@record(frozen=True, slots=True)
class Told:
    """What others were told of an agent that was stopped, deleted or started.

    Answers, what came into their inboxes, and what has changed for them in meetings.
    """

    answered: tuple[Answered, ...]
    posted: tuple[Envelope, ...]
    changes: tuple[MeetingChange, ...] = ()
    talks: tuple[str, ...] = ()
    """Those with it, which are gone too."""


class LetterKind(StrEnum):
    """What a dead letter was: something in an inbox, an event that nobody takes, or what a turn could not send."""

    TALK = "talk"
    TASK = "task"
    MAIL = "mail"
    EVENT = "event"
    MEETING = "meeting"
    OUTGOING = "outgoing"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """What could not be handled: why, when, and how often it was tried."""

    letter_id: str
    user_id: str
    agent_id: str | None
    """In whose inbox it was; of what is outgoing, who has sent it."""
    kind: LetterKind
    fault: str
    """Why, in a word: one of `core.faults`, or expired, full, untaken, undeliverable."""
    reason: str
    """Why, in a sentence for people."""
    attempts: int
    created: datetime
    envelope: Mapping[str, Any]
    """What is posted again when it is retried."""

    @property
    def origin(self) -> str:
        """The id of that with which it all began."""
        kept: Mapping[str, Any] = self.envelope.get("envelope") or self.envelope
        named = (kept.get(name) for name in ("root", "envelope_id", "event_id", "mail_id"))
        return str(next(name for name in named if name))


# --- what becomes of it ------------------------------------------------------------------------------


NEVER = 1e11
"""When something is due that waits for a person: not before they have decided."""


class Verdict(StrEnum):
    """What becomes of an envelope that was tried."""

    DONE = "done"
    RETRY = "retry"
    DEAD = "dead"
    CANCELLED = "cancelled"
    RELEASED = "released"
    WAITING = "waiting"
    """Put to rest until a person has decided; then it is taken up from its journal."""


KEPT = frozenset({Verdict.RETRY, Verdict.WAITING})
"""With these it stays in its inbox, for another try."""


@record(frozen=True, slots=True)
class WorkClosing:
    """All that one try of one envelope leaves behind; written in one transaction."""

    run_id: str
    envelope: Envelope
    epoch: int
    verdict: Verdict
    text: str
    started: float
    ended: float
    reason: str = ""
    """What is told of a failure."""
    fault: str | None = None
    due: float = 0.0
    """When it is tried again."""
    memory: str | None = None
    sent: tuple[Effect, ...] = ()
    sleep: str | None = None
    """What to wake on, if the turn asked for sleep."""
    diary: Written | None = None
    """What its brain notes for itself."""
    changes: list[Change] = field(default_factory=list)
    usage: Usage = NOTHING
    profile: str = ""
    journaled: bool = False
    """Whether there are steps of it on record."""
    given: str | None = None
    """What the turn was given, for a replay."""
    knew: str | None = None
    """What the memory was until then."""


@record(frozen=True, slots=True)
class Change:
    """A change of an agent's state, to be recorded."""

    change_id: str
    at: float
    before: str | None
    after: str
    cause: str
    by: str


@record(frozen=True, slots=True)
class WorkSettled:
    """Whether a closing was taken, and what it has put into inboxes."""

    taken: bool
    posted: tuple[Envelope, ...] = ()
    over: str | None = None
    """The task that is over."""
    answered: Answered | None = None


@record(frozen=True, slots=True)
class Taken:
    """What an agent is given to work on when it is activated. `woken`: why it woke, if it slept."""

    address: str
    found: bool
    ready: bool
    """Whether it may work now: it exists, is neither asleep nor stopped nor paused."""
    config: str = ""
    epoch: int = 0
    memory: str | None = None
    errors: int = 0
    envelopes: tuple[Envelope, ...] = ()
    talks: tuple[tuple[str, str], ...] = ()
    more: int = 0
    """How much there is beside, which was not handed over."""
    woken: str | None = None
    anew: bool = False
    """Whether whoever had it before has lost it."""
    missing: str = ""
    """Its profile, if that is not known here: then it is left as it is, and its talks are told so."""

    @property
    def has_work(self) -> bool:
        return bool(self.envelopes or self.talks)
