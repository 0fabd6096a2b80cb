"""Effects of a turn on meetings; written when the turn settles, or with what it sends before that."""

from __future__ import annotations

from roost.core.meetings.log.bodies import Body
from roost.core.meetings.log.entries import Vector
from roost.core.values.priority import Priority
from roost.core.values.records import record


@record(frozen=True, slots=True)
class WriteEntry:
    """Entry to write as the participant. A call creates a new meeting."""

    effect_id: str
    participant: str
    meeting_id: str
    body: Body
    hops: int = 0
    root: str = ""
    priority: Priority = Priority.NORMAL
    """Priority of the envelopes that carry it."""
    key: str | None = None
    run: str = ""
    """Run that writes it, to find what was refused."""


@record(frozen=True, slots=True)
class EndTurn:
    """End of a participant's turn. `heard`, `asked`: entries it got, and keys it was asked about; None: as before.

    `failed`: reason of a failure; others hear of it, and continue without this turn.
    """

    effect_id: str
    participant: str
    meeting_id: str
    heard: Vector | None
    asked: tuple[str, ...]
    failed: str = ""


@record(frozen=True, slots=True)
class MeetingChange:
    """Change of a meeting for one participant. `before`: its previous phase, or empty if unknown."""

    participant: str
    meeting_id: str
    before: str
    phase: str
    at_once: bool = False
    """True if its brain must be called at once."""
    is_asked: bool = False
    reason: str = ""
    """Reason of a failure."""


MeetingEffect = WriteEntry | EndTurn
