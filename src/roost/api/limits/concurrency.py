"""Limits of concurrent long requests: per user, per address, and per process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from roost.errors import LimitReached

PER_USER = 32
PER_ADDRESS = 256
PER_PROCESS = 512


class ConcurrencyLimit:
    """Counter of open requests of one kind in this process."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._users: Counter[str] = Counter()
        self._addresses: Counter[str] = Counter()

    def take(self, user_id: str, address: str = "") -> None:
        """Count an open request; raise LimitReached if there are too many.

        Call it before the first await: otherwise concurrent requests pass before any of them is counted.

        A request without an address comes from this process, or through an unknown proxy; it has no limit per address.
        """
        full = self._users[user_id] >= PER_USER or self._users.total() >= PER_PROCESS
        if full or (address and self._addresses[address] >= PER_ADDRESS):
            raise LimitReached(f"too many open {self._what}: close some and try again")
        self._users[user_id] += 1
        self._addresses[address] += 1

    def leave(self, user_id: str, address: str = "") -> None:
        self._users[user_id] -= 1
        self._addresses[address] -= 1
        self._users += Counter()  # drops entries at zero
        self._addresses += Counter()

    @contextmanager
    def taken(self, user_id: str, address: str = "") -> Iterator[None]:
        self.take(user_id, address)
        try:
            yield
        finally:
            self.leave(user_id, address)
