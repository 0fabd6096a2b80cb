"""Outcomes of an attempt: the verdict on an envelope, and everything written with it."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from roost.core.envelopes.effects import Effect
from roost.core.envelopes.envelope import Envelope
from roost.core.envelopes.requests import Answered
from roost.core.limits.usage import NOTHING, Usage
from roost.core.meetings.effects import MeetingChange
from roost.core.memory.brain_context import ContextWrite
from roost.core.values.records import record

LONGEST_PAUSE = 3_600.0
"""Maximum seconds between two attempts, before jitter."""
LONGEST_RETRY = 1.5 * LONGEST_PAUSE
NEVER = 1e11
"""Due time of an envelope that waits for an approval."""


class Verdict(StrEnum):
    """Verdict on an envelope after an attempt."""

    DONE = "done"
    RETRY = "retry"
    DEAD = "dead"
    CANCELLED = "cancelled"
    RELEASED = "released"
    WAITING = "waiting"
    """Suspended until a person decides; then it continues from its journal."""
    REPEATED = "repeated"
    """Another turn changed the same names of `turn.state`: it runs again from its journal, without counting."""


KEPT = frozenset({Verdict.RETRY, Verdict.WAITING, Verdict.REPEATED})
"""Verdicts that keep it in the inbox for another attempt."""


@record(frozen=True, slots=True)
class WorkClosing:
    """Final record of one attempt of an envelope; written in one transaction."""

    run_id: str
    envelope: Envelope
    epoch: int
    verdict: Verdict
    text: str
    started: float
    ended: float
    reason: str = ""
    """Reason of a failure."""
    fault: str | None = None
    due: float = 0.0
    """Time of the next attempt."""
    memory: str | None = None
    sent: tuple[Effect, ...] = ()
    sleep: str | None = None
    """Wake condition, if the turn asked for sleep."""
    published: tuple[str, ...] = ()
    """Events that the turn published before it asked for sleep: they do not wake it."""
    brain_context: ContextWrite | None = None
    """Brain context to write."""
    changes: list[StateChange] = field(default_factory=list)
    usage: Usage = NOTHING
    profile: str = ""
    journaled: bool = False
    """Whether steps are recorded for it."""
    given: str | None = None
    """Input of the turn, for a replay."""
    knew: str | None = None
    """`turn.state` before the attempt."""
    traceback: str | None = None
    """The traceback of a failure, for the author of the brain."""


@record(frozen=True, slots=True)
class MemoryWrite:
    """Change that a turn of a talk makes to its agent's `turn.state` before it ends.

    The mark is stored in the journal of the envelope under a negative number, so that the change can be reverted if the
    turn is lost. Without a mark, all marks of the envelope are removed.
    """

    envelope_id: str
    number: int
    knew: str | None
    """`turn.state` before the change."""
    memory: str
    mark: str | None
    address: str = ""
    epoch: int = 0
    position: int = 0
    """Index of the closing before which it is applied, among those settled together."""


@record(frozen=True, slots=True)
class StateChange:
    """Change of an agent's state, to be appended to its history.

    `before` is used only if the history is gone. With an empty `after` the agent stays in its state.
    """

    change_id: str
    at: float
    before: str | None
    after: str
    cause: str
    by: str
    announced: bool = False
    """Whether the activation reported it: then it counts only while the agent is awake."""
    earlier: tuple[StateChange, ...] = ()
    """Earlier announced changes that may not be stored yet."""


@record(frozen=True, slots=True)
class WorkSettled:
    """Result of settling: whether the closing was accepted, and the envelopes it posted."""

    taken: bool
    posted: tuple[Envelope, ...] = ()
    over: str | None = None
    """Task that is over."""
    answered: Answered | None = None


@record(frozen=True, slots=True)
class Told:
    """Consequences for others of stopping, deleting or starting an agent.

    Answers, posted envelopes, and changes in their meetings.
    """

    answered: tuple[Answered, ...]
    posted: tuple[Envelope, ...]
    changes: tuple[MeetingChange, ...] = ()
    talks: tuple[str, ...] = ()
    """Its talks, which are deleted too."""
