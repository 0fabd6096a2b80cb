"""Limits of concurrent long requests: per user, per address, and per process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from roost.core.limits.limits import Limits
from roost.errors import LimitReached


class ConcurrencyLimit:
    """Counter of open requests of one kind in this process."""

    def __init__(self, what: str, limits: Limits) -> None:
        self._what = what
        self._limits = limits
        self._open = 0
        self._users: Counter[str] = Counter()
        self._addresses: Counter[str] = Counter()

    def take(self, user_id: str, address: str = "") -> None:
        """Count an open request; raise LimitReached if there are too many.

        Call it before the first await: otherwise concurrent requests pass before any of them is counted.

        A request without an address comes from this process, or through an unknown proxy; it has no limit per address.
        """
        most = self._limits
        full = self._open >= most.open_requests or self._users[user_id] >= most.open_requests_per_user
        if full or (address and self._addresses[address] >= most.open_requests_per_address):
            raise LimitReached(f"too many open {self._what}: close some and try again")
        self._open += 1
        self._users[user_id] += 1
        self._addresses[address] += 1

    def leave(self, user_id: str, address: str = "") -> None:
        self._open -= 1
        for counter, key in ((self._users, user_id), (self._addresses, address)):
            counter[key] -= 1
            if not counter[key]:
                del counter[key]

    @contextmanager
    def taken(self, user_id: str, address: str = "") -> Iterator[None]:
        self.take(user_id, address)
        try:
            yield
        finally:
            self.leave(user_id, address)
