"""Exclusive turns of one agent: a turn that had to run again often runs alone, and others give way to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from roost.runtime.agents.lanes.lane_queue import Lane

OFTEN = 3
"""Number of repeated runs after which a turn runs alone."""
LONGEST = 30.0
"""Seconds that others give way to it, at most: it may wait for one of them."""


class ExclusiveTurns:
    """Used on the agent's loop.

    Nobody gives way to a turn that waits for an answer, so that agents that ask each other do not block.
    """

    __slots__ = ("_waiters", "lane")

    def __init__(self) -> None:
        self.lane: Lane | None = None
        self._waiters: list[asyncio.Future[None]] = []

    @asynccontextmanager
    async def during(self, lane: Lane) -> AsyncIterator[None]:
        """Run a turn that had to run again often; no other such turn starts meanwhile."""
        await self._until(lambda: self.lane is None or self._waits)
        self.lane = lane
        try:
            yield
        finally:
            if self.lane is lane:
                self.lane = None
            self.changed()

    async def give_way(self, lane: Lane) -> None:
        """Wait before a turn of another lane changes the state."""
        if self.lane is not None and self.lane is not lane:
            await self._until(lambda: self.lane is None or self.lane is lane or self._waits)

    def changed(self) -> None:
        """Check again who has to wait: a turn has begun or ended to wait for an answer, or is over."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    @property
    def _waits(self) -> bool:
        return self.lane is None or self.lane.work is None or self.lane.work.is_waiting

    async def _until(self, condition: Callable[[], bool]) -> None:
        loop = asyncio.get_running_loop()
        latest = loop.time() + LONGEST
        while not condition() and loop.time() < latest:
            self._waiters.append(waiter := loop.create_future())
            timer = loop.call_later(latest - loop.time(), self.changed)
            try:
                await waiter
            finally:
                timer.cancel()
