"""Runs of talks: their envelopes, outcomes, and the results of store operations."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from roost.core.envelopes.effects import Effect
from roost.core.envelopes.envelope import Envelope
from roost.core.envelopes.outcomes import StateChange
from roost.core.limits.usage import NOTHING, Usage
from roost.core.memory.brain_context import ContextWrite
from roost.core.talks.messages import Message, Status
from roost.core.talks.talk import Talk


class StopReason(StrEnum):
    """Reason why a run is stopped from outside."""

    INTERRUPT = "interrupt"
    ROLLBACK = "rollback"
    STOP = "stop"
    DELETE = "delete"
    DRAIN = "drain"
    LOST = "lost"
    WAIT = "wait"
    """It waits for an approval, and runs again after the decision."""


REPEATED = frozenset({StopReason.DRAIN, StopReason.LOST, StopReason.WAIT})
"""Reasons after which the same turn runs again."""


class RunOutcome(StrEnum):
    """Outcome of a run."""

    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    LOST = "lost"
    WAITING = "waiting"
    """Suspended until a person decides. Another run continues from its journal."""
    REPEATED = "repeated"
    """Another turn has changed the same names of `turn.state`. Another run continues from its journal."""


@dataclass(frozen=True, slots=True)
class TalkEnvelope:
    """Envelope of a talk: the message `seq`, which waits for an answer."""

    envelope_id: str
    lane: str
    seq: int
    attempts: int
    """Number of the next or current attempt. The store counts failed ones."""
    due: float
    busy: str
    suspect: int = 0
    """A `Suspicion`."""

    @property
    def is_taken_up(self) -> bool:
        """Return whether its run was suspended: it runs again alone and unchanged, before later messages."""
        return self.due <= 0.0


@dataclass(frozen=True, slots=True)
class Stop:
    """Times of the three stages of a stop."""

    requested: float
    acknowledged: float
    quiesced: float
    abandoned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Closing:
    """Final record of a run; written in one transaction.

    `handled`: delete its envelopes; otherwise they wait for another run; None: handled if any part of the answer was
    readable. `supersede`: later writes of this run are ignored, as when its worker is lost.
    """

    run_id: str
    talk_id: str
    epoch: int
    outcome: RunOutcome
    status: Status
    text: str
    envelopes: tuple[TalkEnvelope, ...]
    handled: bool | None
    started: float
    first_chunk: float | None = None
    error: str | None = None
    fault: str | None = None
    state: str | None = None
    knew: str | None = None
    """The agent's `turn.state` before the run, if the state belongs to an agent."""
    stop: Stop | None = None
    supersede: bool = False
    sent: tuple[Effect, ...] = ()
    agent: str | None = None
    """Agent whose `turn.state` it is, if it is not the talk's own."""
    sleep: str | None = None
    """Wake condition, if the turn asked for sleep."""
    published: tuple[str, ...] = ()
    """Events that the turn published before it asked for sleep: they do not wake it."""
    asleep: StateChange | None = None
    notes: str = ""
    """Output of the side channels, as stored."""
    usage: Usage = NOTHING
    profile: str = ""
    brain_context: ContextWrite | None = None
    """Brain context to write, whatever the outcome."""
    given: str | None = None
    """Input of the turn beside its messages, for a replay."""
    tried: bool = False
    """Whether this counts as an attempt although its envelopes wait for another run."""
    traceback: str | None = None
    """The traceback of a failure, for the author of the brain."""


# --- results of store operations -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Posted:
    """Result of adding a message. `repeated`: it existed already, and nothing has changed."""

    message: Message
    revision: int
    epoch: int
    envelope: TalkEnvelope
    superseded: StopReason | None = None
    withdrawn: int = 0
    repeated: bool = False
    agent: str = ""
    rested: bool = False
    """No run is active: the last one is suspended, or was until this message superseded it."""
    alone: bool = True
    """No other message waits for an answer, and no answer is being written."""


@dataclass(frozen=True, slots=True)
class Opened:
    """Result of opening the message that a run writes."""

    message: Message
    revision: int


@dataclass(frozen=True, slots=True)
class Settled:
    """Result of settling a run. `message` is its answer, if any; `left` are its envelopes that wait for another run."""

    revision: int
    epoch: int
    waiting: int
    message: Message | None
    superseded: bool = False
    left: tuple[TalkEnvelope, ...] = ()
    gone: bool = False
    posted: tuple[Envelope, ...] = ()
    """Envelopes it has posted to agents."""
    rested: bool = False
    """It is suspended, and so are all later messages."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """Result of taking over a lane from its previous owner."""

    revision: int
    epoch: int
    envelopes: tuple[TalkEnvelope, ...]
    message: Message | None


@dataclass(frozen=True, slots=True)
class Halted:
    """Result of stopping a talk: its lane is empty, and its last run may not write any more."""

    revision: int
    epoch: int
    waiting: int
    now: float
    message: Message | None = None
    """Text of a suspended run."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Snapshot of a talk from the store, with its newest messages and their revisions."""

    talk: Talk
    revision: int
    epoch: int
    state: str | None
    messages: list[tuple[Message, int]]
    floor: int
    """No older message has changed after this revision."""
    rests: bool = False
    """Whether its run is suspended and not loaded."""
