"""Reads that many callers share: those that ask for the same thing while it is read wait for one result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class SharedReads(Generic[T]):
    """Reads in progress by their key. Used on one loop."""

    def __init__(self) -> None:
        self._running: dict[Hashable, _Read[T]] = {}

    def __len__(self) -> int:
        return len(self._running)

    async def get(self, key: Hashable, read: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of `read`, or of the one with this key that is in progress.

        An error is raised to all callers. A read that no caller waits for any more is cancelled.
        """
        found = self._running.get(key)
        if found is None:
            found = self._running[key] = _Read(asyncio.create_task(read(), name="shared read"))
            found.task.add_done_callback(lambda _: self._end(key, found))
        found.waiting += 1
        try:
            if not found.task.done():
                await found.done.wait()
        finally:
            found.waiting -= 1
            if not found.waiting and not found.task.done():
                self._end(key, found)
                found.task.cancel()
        return found.task.result()

    def _end(self, key: Hashable, read: _Read[T]) -> None:
        if self._running.get(key) is read:
            del self._running[key]
        if read.task.done() and not read.task.cancelled():
            read.task.exception()  # if all callers have left meanwhile, no caller sees it
        read.done.set()


class _Read(Generic[T]):
    __slots__ = ("done", "task", "waiting")

    def __init__(self, task: asyncio.Task[T]) -> None:
        self.task = task
        self.done = asyncio.Event()
        self.waiting = 0
