"""Entries of an inbox, as the owner of the agent sees them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from roost.core.envelopes.envelope import Kind
from roost.core.values.priority import Priority

EXCERPT = 300
"""Characters of a text that are shown."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Envelope in an inbox. `text`: the beginning of a task, answer or message, a subject, the name of an event."""

    envelope_id: str
    kind: Kind
    lane: str
    priority: Priority
    sender: str
    text: str
    created: datetime
    due: datetime | None
    """Time before which it is not handled, for example after a failed attempt."""
    failures: int
    """Failed attempts."""
    is_parked: bool
    """True if it waits for a decision of a person."""
