"""Memory for request bodies in transfer: one budget for all requests, and a share of it per user."""

from __future__ import annotations

from collections import Counter

FREE = 64 * 1024
"""Bytes of each body that do not count, so that small requests pass when the budget is exhausted."""
SHARES = 4
"""One user may use the budget divided by this."""


class BodyMemory:
    """Bytes held by request bodies, per user. Not thread-safe: used on one loop."""

    def __init__(self, total: float) -> None:
        self._total = total
        self._held: Counter[str] = Counter()
        self.held = 0

    def body(self, key: str) -> BodyAllocation:
        return BodyAllocation(self, key)

    def take(self, key: str, size: int) -> bool:
        """Reserve bytes if the budget allows it; return whether it did."""
        if self.held + size > self._total or self._held[key] + size > self._total / SHARES:
            return False
        self._held[key] += size
        self.held += size
        return True

    def give_back(self, key: str, size: int) -> None:
        self.held -= size
        self._held[key] -= size
        if not self._held[key]:
            del self._held[key]


class BodyAllocation:
    """Reservation of one body, which grows while the body is received."""

    def __init__(self, budget: BodyMemory, key: str) -> None:
        self._budget = budget
        self._key = key
        self._taken = 0
        self.size = 0

    def grow(self, size: int) -> bool:
        """Reserve received bytes; return whether the budget allows it."""
        self.size += size
        more = max(0, self.size - FREE) - self._taken
        if more <= 0:
            return True
        if not self._budget.take(self._key, more):
            return False
        self._taken += more
        return True

    def end(self) -> None:
        if self._taken:
            self._budget.give_back(self._key, self._taken)
            self._taken = 0
