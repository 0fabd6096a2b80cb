"""Reads that many callers share: those that ask for the same thing while it is read wait for one result."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedReads(Generic[T]):
    """Reads in progress by their key. Used on one loop."""

    def __init__(self) -> None:
        self._running: dict[Hashable, _Read[T]] = {}

    def __len__(self) -> int:
        return len(self._running)

    async def get(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `read`, or of the one with this key that is in progress.

        The first caller reads, without a task for it: most reads have no other caller. If it is cancelled, one of the
        others reads instead. An error is raised to all callers.
        """
        while (found := self._running.get(key)) is not None:
            await found.ended()
            if found.error is not None:
                raise found.error
            if found.has_result:
                return found.result
        found = self._running[key] = _Read()
        try:
            found.result = await read()
            found.has_result = True
            return found.result
        except Exception as error:
            found.error = error
            raise
        finally:
            del self._running[key]
            found.end()


class _Read(Generic[T]):
    """Read in progress. It may end without a result and without an error: its caller was cancelled."""

    __slots__ = ("_waiting", "error", "has_result", "result")
    result: T

    def __init__(self) -> None:
        self.has_result = False
        self.error: Exception | None = None
        self._waiting: list[asyncio.Future[None]] = []

    async def ended(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    def end(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
