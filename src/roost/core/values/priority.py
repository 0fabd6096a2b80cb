"""Priorities, and the rank they give in a queue."""

from __future__ import annotations

from enum import StrEnum


class Priority(StrEnum):
    """Priority of an envelope. Compare by `level`: as texts they sort alphabetically."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"
    URGENT = "urgent"

    @property
    def level(self) -> int:
        """Return 0 for low up to 3 for urgent."""
        return _LEVELS[self]

    @property
    def weight(self) -> float:
        """Return the number of seconds by which it moves ahead."""
        return _WEIGHTS[self]


_LEVELS = {priority: level for level, priority in enumerate(Priority)}
_WEIGHTS = {Priority.LOW: 0.0, Priority.NORMAL: 60.0, Priority.HIGH: 600.0, Priority.URGENT: 3600.0}


def rank(created: float, priority: Priority) -> float:
    """Return the rank in a queue, smallest first: urgent ones overtake, and old low ones move up with time."""
    return created - priority.weight
