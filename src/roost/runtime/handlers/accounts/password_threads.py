"""Threads that hash passwords: few at a time, since each hash takes 19 MiB and all of a core."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from roost.errors import Unavailable
from roost.ports import Host, Pending

T = TypeVar("T")
AT_ONCE = 2
MOST_WAITING = 100
"""Hashes that wait for a thread; more would answer later than anybody waits."""


class PasswordThreads:
    """Runs functions on threads of its own, in order. A thread ends when nothing waits."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._lock = host.lock()
        self._waiting: deque[tuple[Callable[[], object], Pending[Any]]] = deque()
        self._threads = 0

    async def run(self, act: Callable[[], T]) -> T:
        """Return the result of a function. Raise Unavailable if too many wait already."""
        done: Pending[T] = self._host.pending()
        with self._lock:
            if len(self._waiting) >= MOST_WAITING:
                raise Unavailable("too many people sign in at this moment: try again in a few seconds")
            self._waiting.append((act, done))
            starts = self._threads < AT_ONCE
            self._threads += starts
        if starts:
            self._host.run_blocking("roost-password", self._work)
        return await done

    def _work(self) -> None:
        while (job := self._next()) is not None:
            act, done = job
            try:
                done.set(act())
            except Exception as error:  # raised where the result is awaited
                done.fail(error)

    def _next(self) -> tuple[Callable[[], object], Pending[Any]] | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._threads -= 1
            return None
