"""Facts that can be read: the newest ones of all users, in a ring in RAM.

Recording a fact costs an append; it becomes a `Fact` when it is read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Protocol

from roost.core.monitoring.facts import Fact, FactPage, FactRow, decode, encode, owner_of
from roost.core.talks.messages import at
from roost.ports import Host, Tx

MAX_UNNUMBERED = 256
"""Maximum number of facts without a number, unless a reader asks for them."""

Arrived = Callable[[Sequence[FactRow]], object]
"""Called when facts can be read."""


class FactLog(Protocol):
    """Facts in order, with cursors. Any thread may call."""

    def committing(self, tx: Tx, rows: Sequence[FactRow]) -> None:
        """Write the facts of a transaction, if they are kept in the store."""

    def add(self, rows: Sequence[FactRow]) -> None:
        """Add facts after the commit that they report."""

    def record(self, rows: Sequence[FactRow]) -> None:
        """Add facts that belong to no commit."""

    def end(self) -> str:
        """Return the cursor after the last fact that can be read."""
        ...

    def since(self, user_id: str, after: str, limit: int) -> FactPage:
        """Return facts of a user after a cursor."""
        ...

    def newest(self, user_id: str, limit: int) -> FactPage: ...

    async def catch_up(self) -> None:
        """Make everything readable that was committed before the call."""

    async def close(self) -> None: ...


class FactRing:
    """Facts of one process. Their numbers count from its start."""

    def __init__(self, host: Host, kept: int, arrived: Arrived) -> None:
        self._clock = host.clock
        self._lock = host.lock()
        self._start = host.new_id("monitor").rpartition("_")[2]
        self._arrived = arrived
        self._ring: deque[FactRow] = deque(maxlen=kept)
        self._count = 0
        self._incoming: deque[FactRow] = deque()
        """Facts that are not in the ring yet: recording takes no lock."""

    def committing(self, tx: Tx, rows: Sequence[FactRow]) -> None:
        pass

    def add(self, rows: Sequence[FactRow]) -> None:
        self._incoming.extend(rows)
        if len(self._incoming) > MAX_UNNUMBERED:
            with self._lock:
                self._number_new()
        self._arrived(rows)

    record = add

    def end(self) -> str:
        with self._lock:
            return encode(self._start, self._number_new())

    def since(self, user_id: str, after: str, limit: int) -> FactPage:
        start, number = decode(after)
        with self._lock:
            count = self._number_new()
            kept = len(self._ring)
            oldest = count - kept
            gap = start != self._start or not oldest <= number <= count
            first = oldest if gap else number
            new = list(islice(reversed(self._ring), count - first))
        new.reverse()
        facts: list[Fact] = []
        reached = count
        for offset, row in enumerate(new, 1):
            if is_for(user_id, row):
                if len(facts) == limit:
                    reached = first + offset - 1
                    break
                facts.append(self._fact(row, first + offset))
        return FactPage(tuple(facts), encode(self._start, reached), at(self._clock.now()), gap, reached < count)

    def newest(self, user_id: str, limit: int) -> FactPage:
        with self._lock:
            count = self._number_new()
            ring = list(self._ring)
        numbered = ((row, count - back) for back, row in enumerate(reversed(ring)))
        newest = list(islice(((row, number) for row, number in numbered if is_for(user_id, row)), limit))
        facts = tuple(self._fact(row, number) for row, number in reversed(newest))
        return FactPage(facts, encode(self._start, count), at(self._clock.now()))

    async def catch_up(self) -> None:
        """Do nothing: facts are added before callers get the result of their commit."""

    async def close(self) -> None: ...

    def _number_new(self) -> int:
        """Move new facts into the ring, with the lock held; return the number of all facts."""
        incoming = self._incoming
        for _ in range(len(incoming)):
            self._ring.append(incoming.popleft())
            self._count += 1
        return self._count

    def _fact(self, row: FactRow, number: int) -> Fact:
        return shown(row, encode(self._start, number))


def shown(row: FactRow, cursor: str) -> Fact:
    """Return a fact as readers get it."""
    name, when, _, about, data, root = row
    person = about is not None and about.endswith("/")
    kept = {key: str(value) if isinstance(value, str) else value for key, value in data.items()}
    return Fact(name, at(when), owner_of(row), None if person else about, kept, root, cursor)


def is_for(user_id: str, row: FactRow) -> bool:
    """Return True for facts of this user, and for facts without an owner, such as a restarted worker."""
    return row[2] == "" or owner_of(row) == user_id
