"""How many requests may be held open at once: by a user, and by all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from roost.errors import LimitReached

PER_USER = 32
PER_PROCESS = 512


class Places:
    """Those of one kind that are taken, in this process."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._taken: Counter[str] = Counter()

    def take(self, user_id: str) -> None:
        """Before anything is awaited: of many that come at once, none may pass on what the others have not counted."""
        if self._taken[user_id] >= PER_USER or self._taken.total() >= PER_PROCESS:
            raise LimitReached(f"too many {self._what} are open: close some and try again")
        self._taken[user_id] += 1

    def leave(self, user_id: str) -> None:
        self._taken[user_id] -= 1
        self._taken += Counter()  # forgets the users who have none

    @contextmanager
    def taken(self, user_id: str) -> Iterator[None]:
        self.take(user_id)
        try:
            yield
        finally:
            self.leave(user_id)
