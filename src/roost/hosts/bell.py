"""Bells: they wake one waiter again and again, from any thread."""

from __future__ import annotations

import asyncio

from roost.hosts.pending import HostPending, is_driving, settle_soon


class HostBell:
    """Bell of one waiter. Cheaper than a result and a timer for each wait: its timer stays until its time."""

    __slots__ = ("_deadline", "_future", "_is_rung", "_pending", "_timer")

    def __init__(self) -> None:
        self._is_rung = False
        self._future: asyncio.Future[None] | None = None
        self._pending: HostPending[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0

    def ring(self) -> None:
        self._is_rung = True
        future, pending = self._future, self._pending
        if future is not None:
            settle_soon(future)
        if pending is not None:
            pending.set(None)

    def clear(self) -> None:
        self._is_rung = False

    async def within(self, seconds: float) -> bool:
        if is_driving():
            await self._on_thread(seconds)
        else:
            await self._on_loop(asyncio.get_running_loop(), seconds)
        return self._is_rung

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _on_thread(self, seconds: float) -> None:
        self._pending = pending = HostPending[None]()
        try:
            if not self._is_rung:  # a ring from now on sets the result
                await pending.within(seconds)
        finally:
            self._pending = None

    async def _on_loop(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self._future = future = loop.create_future()
        try:
            if self._is_rung:
                return
            self._deadline = loop.time() + seconds
            if self._timer is None or self._timer.when() > self._deadline:
                self.close()
                self._timer = loop.call_at(self._deadline, self._elapsed, loop)
            await future
        finally:
            self._future = None

    def _elapsed(self, loop: asyncio.AbstractEventLoop) -> None:
        """Settle the wait if its time is over; the timer may be that of an earlier wait, which was rung."""
        self._timer = None
        if (future := self._future) is None or future.done():
            return
        if loop.time() < self._deadline:
            self._timer = loop.call_at(self._deadline, self._elapsed, loop)
        else:
            future.set_result(None)
