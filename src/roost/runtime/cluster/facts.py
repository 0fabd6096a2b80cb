"""Facts of all nodes of a cluster: written to the store with their commits, and read from there by every node.

Each node keeps the newest facts in RAM, in the order of the store, so that a cursor means the same on every node. It
reads new ones when a node notifies it, while somebody reads here, and otherwise each second.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice

from roost.core.limits.limits import Limits
from roost.core.monitoring.facts import Fact, FactPage, FactRow, decode, encode
from roost.core.talks.messages import at
from roost.errors import Unavailable
from roost.ports import Host, Loop, Store, Tx
from roost.runtime.cluster.membership import Membership
from roost.runtime.monitoring.fact_ring import is_for, shown
from roost.runtime.monitoring.fact_stream import FactStream
from roost.stores.sql import facts as facts_sql
from roost.stores.sql.facts import Position, StoredFact

log = logging.getLogger("roost.monitor")

POLL = 1.0
"""Seconds between two reads of the store without a notice, while somebody reads here."""
UNREAD = 10.0
"""The same while nobody does: a reader first reads everything that was committed before."""
GATHER = 0.02
"""Seconds for which notices are gathered, here and by the nodes that send them."""
TRIM = 10.0
"""Seconds between two deletions of old facts, by one node for all."""
KEPT = 24 * 3600.0
"""Seconds for which facts are kept at most."""
AT_ONCE = 2_000
"""Facts per read."""
_TICK = re.compile("c([0-9]{1,19})")


class ClusterFacts:
    """Has a loop of its own, which runs no brains."""

    def __init__(self, host: Host, store: Store, limits: Limits, membership: Membership, monitor: FactStream) -> None:
        self._host = host
        self._store = store
        self._mesh = membership.mesh
        self._membership = membership
        self._monitor = monitor
        self._kept = limits.facts_kept
        self._lock = host.lock()
        found = store.read_now(facts_sql.newest, self._kept)
        self._ring: deque[StoredFact] = deque(found.facts)
        self._floor = found.floor
        """Facts after this position are complete, up to `_end`."""
        self._end = found.facts[-1][0] if found.facts else found.floor
        self._horizon = found.horizon
        self._fresh = False
        """True if other nodes have to be notified of facts of this one."""
        self._rung = False
        self._closing = False
        self._bell = asyncio.Event()
        self._mesh.handlers["facts"] = self._notified
        self._loop = host.start_loop("roost-facts", self._main, lambda *_: None)

    # --- writing ---------------------------------------------------------------------------------

    def committing(self, tx: Tx, rows: Sequence[FactRow]) -> None:
        """Write the facts of a transaction."""
        facts_sql.add(tx, (*rows, *self._monitor.letters(tx.died)))

    def add(self, rows: Sequence[FactRow]) -> None:
        if rows:
            self._fresh = True
            self._ring_bell()

    def record(self, rows: Sequence[FactRow]) -> None:
        about = rows[0][3] or ""
        key = "" if "/" in about else about  # the order of writes of a talk is kept, and that of agents
        try:
            self._store.write(facts_sql.add, rows, key=key, then=lambda _: self.add(rows), failed=_lost)
        except Unavailable as error:
            _lost(error)

    # --- reading ---------------------------------------------------------------------------------

    def end(self) -> str:
        return _cursor(self._end)

    def since(self, user_id: str, after: str, limit: int) -> FactPage:
        wanted = _position(after)
        with self._lock:
            gap = wanted is None or wanted < self._floor or wanted.tick >= self._horizon
            first = self._floor if gap or wanted is None else wanted
            new = self._after(first)
            end = max(first, self._end)
        facts: list[Fact] = []
        for position, row in new:
            if is_for(user_id, row):
                if len(facts) == limit:
                    return FactPage(tuple(facts), facts[-1].cursor, self._now(), gap, True)
                facts.append(shown(row, _cursor(position)))
        return FactPage(tuple(facts), _cursor(end), self._now(), gap)

    def newest(self, user_id: str, limit: int) -> FactPage:
        with self._lock:
            ring, end = list(self._ring), self._end
        found = list(islice((one for one in reversed(ring) if is_for(user_id, one[1])), limit))
        facts = tuple(shown(row, _cursor(position)) for position, row in reversed(found))
        return FactPage(facts, _cursor(end), self._now())

    async def catch_up(self) -> None:
        """Read everything that all nodes have committed before the call."""
        while await self._read():
            pass

    async def close(self) -> None:
        self._closing = True
        self._loop.call(self._bell.set)
        if await self._loop.over.within(5.0):
            self._loop.join()

    def _now(self) -> datetime:
        return at(self._host.clock.now())

    def _after(self, first: Position) -> list[StoredFact]:
        """Return the facts after a position, with the lock held; most readers want only the last ones."""
        new: list[StoredFact] = []
        for one in reversed(self._ring):
            if one[0] <= first:
                break
            new.append(one)
        new.reverse()
        return new

    async def _read(self) -> bool:
        """Read facts after the last known one; return whether there are more."""
        found = await self._store.read(facts_sql.after, self._end, AT_ONCE)
        with self._lock:
            new = [one for one in found.facts if one[0] > self._end]
            self._ring.extend(new)
            self._end, self._horizon = max(self._end, found.end), max(self._horizon, found.horizon)
            while len(self._ring) > self._kept:
                self._floor, _ = self._ring.popleft()
        if new:
            self._monitor.arrived([row for _, row in new])
        return found.more

    # --- on the loop -----------------------------------------------------------------------------

    async def _main(self, loop: Loop) -> None:
        trimmed = read = self._host.clock.monotonic() - POLL
        while not self._closing:
            self._rung = False
            if self._fresh:
                self._fresh = False
                self._mesh.tell_all("facts")
            now = self._host.clock.monotonic()
            with suppress(Unavailable):  # followers wait until the store is back
                if self._monitor.has_readers or now - read >= UNREAD:
                    read = now
                    await self.catch_up()
                if now - trimmed > TRIM and self._membership.is_first:
                    trimmed = now
                    await self._store.write(facts_sql.trim, self._kept, self._host.clock.now() - KEPT)
            await asyncio.sleep(GATHER)
            await self._pause()

    async def _pause(self) -> None:
        timer = asyncio.get_running_loop().call_later(POLL, self._bell.set)
        try:
            await self._bell.wait()
        finally:
            timer.cancel()
        self._bell.clear()

    def _notified(self) -> None:
        if self._monitor.has_readers:
            self._ring_bell()

    def _ring_bell(self) -> None:
        if not self._rung:
            self._rung = True
            self._loop.call(self._bell.set)


def _cursor(position: Position) -> str:
    return encode(f"c{position.tick}", position.number)


def _position(cursor: str) -> Position | None:
    """Return the position of a cursor; None for one of a single process."""
    start, number = decode(cursor)
    found = _TICK.fullmatch(start)
    return None if found is None else Position(int(found[1]), number)


def _lost(error: Exception) -> None:
    log.warning("facts could not be stored: %s", error)
