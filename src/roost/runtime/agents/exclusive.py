"""Turns of one agent that had to run again and again are run one at a time, and others give way to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from roost.runtime.agents.lane_queue import Lane

OFTEN = 3
"""Number of repeated runs after which a turn runs alone."""
LONGEST = 30.0
"""Seconds that others give way to it at most: it may wait for something that one of them does."""


class ExclusiveTurns:
    """Belongs to one agent that is awake; used on its loop.

    Nobody gives way to a turn that waits for an answer, so that agents that ask each other do not block.
    """

    def __init__(self) -> None:
        self.lane: Lane | None = None
        self._bells: list[asyncio.Future[None]] = []

    @asynccontextmanager
    async def during(self, lane: Lane) -> AsyncIterator[None]:
        """Around a turn that had to run again often: no other one that had to is begun meanwhile."""
        await self._until(lambda: self.lane is None or self._waits)
        self.lane = lane
        try:
            yield
        finally:
            if self.lane is lane:
                self.lane = None
            self.changed()

    async def give_way(self, lane: Lane) -> None:
        """Before a turn of another lane changes the memory."""
        if self.lane is not None and self.lane is not lane:
            await self._until(lambda: self.lane is None or self.lane is lane or self._waits)

    def changed(self) -> None:
        """A turn waits for an answer, or does not any more, or is over."""
        bells, self._bells = self._bells, []
        for bell in bells:
            if not bell.done():
                bell.set_result(None)

    @property
    def _waits(self) -> bool:
        return self.lane is None or self.lane.work is None or self.lane.work.is_waiting

    async def _until(self, so: Callable[[], bool]) -> None:
        loop = asyncio.get_running_loop()
        latest = loop.time() + LONGEST
        while not so() and loop.time() < latest:
            self._bells.append(bell := loop.create_future())
            timer = loop.call_later(latest - loop.time(), self.changed)
            try:
                await bell
            finally:
                timer.cancel()
