"""Events: named facts, told to whoever subscribed, and kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from roost.core.priority import Priority

FAILED = "agent.failed"
"""Published when an agent has failed for good at something it was given."""


@dataclass(frozen=True, slots=True)
class Event:
    """One fact that was published. `takers`: into how many inboxes it was put."""

    event_id: str
    user_id: str
    name: str
    data: Any
    priority: Priority
    publisher: str
    created: datetime
    takers: int
