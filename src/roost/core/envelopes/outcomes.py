"""Changes that are written beside envelopes: states of agents, `turn.state`, and consequences for others."""

from __future__ import annotations

from roost.core.envelopes.envelope import Envelope
from roost.core.envelopes.requests import Answered
from roost.core.meetings.effects import MeetingChange
from roost.core.values.records import record

LONGEST_PAUSE = 3_600.0
"""Maximum seconds between two attempts, before jitter."""
LONGEST_RETRY = 1.5 * LONGEST_PAUSE
NEVER = 1e11
"""A time that does not come."""


@record(frozen=True, slots=True)
class StateWrite:
    """Change that a turn of a talk makes to its agent's `turn.state` before it ends.

    The mark is stored in the journal of the envelope under a negative number, so that the change can be reverted if the
    turn is lost. Without a mark, all marks of the envelope are removed.
    """

    envelope_id: str
    number: int
    state_before: str | None
    """`turn.state` before the change."""
    state: str
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
    """True if the activation reported it: then it counts only while the agent is awake."""
    earlier: tuple[StateChange, ...] = ()
    """Earlier announced changes that may not be stored yet."""


@record(frozen=True, slots=True)
class Consequences:
    """Consequences for others of stopping, deleting or starting an agent.

    Answers, posted envelopes, and changes in their meetings.
    """

    answered: tuple[Answered, ...]
    posted: tuple[Envelope, ...]
    changes: tuple[MeetingChange, ...] = ()
    talks: tuple[str, ...] = ()
    """Its talks, which are deleted too."""
