"""How urgent something is, and what that does to its place in a queue."""

from __future__ import annotations

from enum import StrEnum


class Priority(StrEnum):
    """As texts they sort by the alphabet: compare them by `level`."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"
    URGENT = "urgent"

    @property
    def level(self) -> int:
        """From 0 for low to 3 for urgent."""
        return _LEVELS[self]

    @property
    def weight(self) -> float:
        """How many seconds it may overtake."""
        return _WEIGHTS[self]


_LEVELS = {priority: level for level, priority in enumerate(Priority)}
_WEIGHTS = {Priority.LOW: 0.0, Priority.NORMAL: 60.0, Priority.HIGH: 600.0, Priority.URGENT: 3600.0}


def rank(created: float, priority: Priority) -> float:
    """The place in a queue, smallest first: urgent ones overtake, and old low ones come up by themselves."""
    return created - priority.weight
