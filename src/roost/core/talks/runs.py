"""Runs of talks: why they are stopped, and the results of store operations."""

from __future__ import annotations

from enum import StrEnum

from roost.core.envelopes.envelope import Envelope
from roost.core.talks.messages import Message
from roost.core.talks.talk import Talk
from roost.core.values.records import record


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


@record(frozen=True, slots=True)
class Stop:
    """Times of the three stages of a stop."""

    requested: float
    acknowledged: float
    quiesced: float
    abandoned: tuple[str, ...] = ()


# --- results of store operations -------------------------------------------------------------------


@record(frozen=True, slots=True)
class Posted:
    """Result of adding a message. `repeated`: it existed already, and nothing has changed."""

    message: Message
    revision: int
    epoch: int
    envelope: Envelope
    superseded: StopReason | None = None
    withdrawn: int = 0
    repeated: bool = False
    agent: str = ""
    was_parked: bool = False
    """No run is active: the last one is suspended, or was until this message superseded it."""
    alone: bool = True
    """No other message waits for an answer, and no answer is being written."""
    node: str = ""
    """Node of the cluster that the talk belongs to."""


@record(frozen=True, slots=True)
class Opened:
    """Result of opening the message that a run writes."""

    message: Message
    revision: int


@record(frozen=True, slots=True)
class TalkUpdate:
    """A talk after the end of a run or of one of its messages.

    `message` is the answer, if any; `left` are envelopes of the run that wait for another one.
    """

    revision: int
    epoch: int
    waiting: int
    message: Message | None
    superseded: bool = False
    left: tuple[Envelope, ...] = ()
    gone: bool = False
    """The talk was deleted."""
    parked: bool = False
    """The run is suspended, and so are all later messages."""


@record(frozen=True, slots=True)
class Claimed:
    """Result of taking over a lane from its previous owner."""

    revision: int
    epoch: int
    envelopes: tuple[Envelope, ...]
    message: Message | None


@record(frozen=True, slots=True)
class Halted:
    """Result of stopping a talk: its lane is empty, and its last run may not write any more."""

    revision: int
    epoch: int
    waiting: int
    now: float
    message: Message | None = None
    """Text of a suspended run."""
    node: str = ""
    """Node of the cluster that the talk belongs to."""


@record(frozen=True, slots=True)
class Loaded:
    """Snapshot of a talk from the store, with its newest messages and their revisions."""

    talk: Talk
    revision: int
    epoch: int
    state: str | None
    messages: list[tuple[Message, int]]
    floor: int
    """No older message has changed after this revision."""
    is_parked: bool = False
    """True if its run is suspended and not loaded."""
    node: str = ""
    """Node of the cluster that the talk belongs to."""
