"""Events: named facts that are delivered to subscribers, and kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from roost.core.values.priority import Priority

FAILED = "agent.failed"
"""Name of the event that is published when an envelope of an agent has failed for good."""


@dataclass(frozen=True, slots=True)
class Event:
    """Published event. `takers`: number of inboxes that received it."""

    event_id: str
    user_id: str
    name: str
    data: Any
    priority: Priority
    publisher: str
    created: datetime
    takers: int
