"""Runs: what a runner is given, and the durable record of what it did."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from roost.core.diary import Written
from roost.core.envelopes import Change, Effect
from roost.core.envelopes import Envelope as Posting
from roost.core.messages import Message, Status
from roost.core.talks import Talk
from roost.core.usage import NOTHING, Usage


class Why(StrEnum):
    """Why a run is ended from outside."""

    INTERRUPT = "interrupt"
    ROLLBACK = "rollback"
    STOP = "stop"
    DELETE = "delete"
    DRAIN = "drain"
    LOST = "lost"
    WAIT = "wait"
    """It waits for a person, and is run again when they have decided."""


class Outcome(StrEnum):
    """How a run ended."""

    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    LOST = "lost"
    WAITING = "waiting"
    """Put to rest until a person has decided. Another run goes on from its journal."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """One thing to be handled; of a talk: the message `seq`, which waits for its answer."""

    envelope_id: str
    lane: str
    seq: int
    attempts: int
    due: float
    busy: str

    @property
    def is_taken_up(self) -> bool:
        """Whether its run was put to rest: it is run again by itself, as it was then, before all that came later."""
        return self.due == 0.0


@dataclass(frozen=True, slots=True)
class Stop:
    """The times of a stop's three stages."""

    requested: float
    acknowledged: float
    quiesced: float
    abandoned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Closing:
    """All that a run leaves behind when it is over; written in one transaction.

    With `handled` its envelopes are gone, else they wait for another run; None: handled if anyone could
    read a word of the answer. With `supersede` nothing that this run still writes counts any more, as when
    its worker was lost.
    """

    run_id: str
    talk_id: str
    epoch: int
    outcome: Outcome
    status: Status
    text: str
    envelopes: tuple[Envelope, ...]
    handled: bool | None
    started: float
    first_chunk: float | None = None
    error: str | None = None
    fault: str | None = None
    state: str | None = None
    stop: Stop | None = None
    supersede: bool = False
    sent: tuple[Effect, ...] = ()
    agent: str | None = None
    """Whose memory the state is, if it is not the talk's own."""
    sleep: str | None = None
    """What to wake on, if the turn asked for sleep."""
    asleep: Change | None = None
    notes: str = ""
    """What it said beside its answer, as it is stored."""
    usage: Usage = NOTHING
    profile: str = ""
    diary: Written | None = None
    """What its brain notes for itself, however it has ended."""
    given: str | None = None
    """What the turn was given beside its messages, for a replay."""


# --- what operations give back, for the memory to follow the store ---------------------------------


@dataclass(frozen=True, slots=True)
class Posted:
    """A message was added. `repeated`: it was there already, and nothing has changed."""

    message: Message
    revision: int
    epoch: int
    envelope: Envelope
    superseded: Why | None = None
    withdrawn: int = 0
    repeated: bool = False
    agent: str = ""
    rested: bool = False
    """No run is under way: the one there was waits for a person, or did until this superseded it."""
    alone: bool = True
    """Nothing else waits for an answer, and none is being written."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The message that a run writes exists now."""

    message: Message
    revision: int


@dataclass(frozen=True, slots=True)
class Settled:
    """A run is over. `message` is the one it wrote, if any; `left` are its envelopes that wait for another run."""

    revision: int
    epoch: int
    waiting: int
    message: Message | None
    superseded: bool = False
    left: tuple[Envelope, ...] = ()
    gone: bool = False
    posted: tuple[Posting, ...] = ()
    """What it has put into the inboxes of agents."""
    rested: bool = False
    """It waits for a person, and so does all that came after it."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A lane was taken over from whoever had it before."""

    revision: int
    epoch: int
    envelopes: tuple[Envelope, ...]
    message: Message | None


@dataclass(frozen=True, slots=True)
class Halted:
    """A talk was stopped: nothing waits in its lane, and whoever ran there may write no more."""

    revision: int
    epoch: int
    waiting: int
    now: float
    message: Message | None = None
    """What was said by a run that waited for a person."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A talk as it is in the store at one moment, with the newest of its messages and their revisions."""

    talk: Talk
    revision: int
    epoch: int
    state: str | None
    messages: list[tuple[Message, int]]
    floor: int
    """No message older than those was changed after this revision."""
    rests: bool = False
    """Whether its run waits for a person, and is nowhere in memory."""
