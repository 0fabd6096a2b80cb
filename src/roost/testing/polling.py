"""Polling of conditions instead of sleeping, and retries while a store is unavailable."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar, overload

from roost.errors import NotFound, Unavailable

T = TypeVar("T")
SHORTEST, LONGEST = 0.002, 0.1
"""Shortest and longest interval between polls in seconds."""


def eventually(condition: Callable[[], T], within: float = 5.0) -> T:
    """Poll until the condition returns a true value, and return it; otherwise raise AssertionError with what was seen.

    An AssertionError or NotFound in the condition counts as not yet.
    """
    attempts, latest = _Attempts[T](within), time.monotonic() + within
    while True:
        try:
            if attempts.saw(answer := condition()):
                return answer
        except (AssertionError, NotFound) as error:
            attempts.failed(error)
        attempts.continue_until(latest, time.monotonic())
        time.sleep(attempts.pause)


@overload
async def aeventually(condition: Callable[[], Awaitable[T]], within: float = 5.0) -> T: ...


@overload
async def aeventually(condition: Callable[[], T], within: float = 5.0) -> T: ...


async def aeventually(condition: Callable[[], Any], within: float = 5.0) -> Any:
    """Poll as `eventually` does, in a coroutine, in real or simulated time."""
    loop = asyncio.get_running_loop()
    attempts, latest = _Attempts[Any](within), loop.time() + within
    while True:
        try:
            answer = condition()
            if inspect.isawaitable(answer):
                answer = await answer
            if attempts.saw(answer):
                return answer
        except (AssertionError, NotFound) as error:
            attempts.failed(error)
        attempts.continue_until(latest, loop.time())
        await asyncio.sleep(attempts.pause)


async def insist(act: Callable[[], Awaitable[T]], within: float = 60.0) -> T:
    """Retry while the store is Unavailable, as a client would. Use a key, so that the operation is done once."""
    loop = asyncio.get_running_loop()
    latest = loop.time() + within
    while True:
        try:
            return await act()
        except Unavailable:
            if loop.time() >= latest:
                raise
        await asyncio.sleep(LONGEST)


class _Attempts(Generic[T]):
    """Values seen so far, for the error message."""

    def __init__(self, within: float) -> None:
        self.pause = SHORTEST
        self._within = within
        self._times = 0
        self._seen: list[str] = []
        self._error: Exception | None = None

    def saw(self, answer: T) -> bool:
        self._times += 1
        self._error = None
        self._note(f"{answer!r:.300}")
        return bool(answer)

    def failed(self, error: Exception) -> None:
        self._times += 1
        self._error = error
        self._note(f"{type(error).__name__}: {error!s:.300}")

    def continue_until(self, latest: float, now: float) -> None:
        if now >= latest:
            before = f", before that {', '.join(self._seen[-4:-1])}" if len(self._seen) > 1 else ""
            last = f"not so within {self._within:g} s; last seen: {self._seen[-1]}{before} (looked {self._times} times)"
            raise AssertionError(last) from self._error
        self.pause = min(self.pause * 1.3, LONGEST)

    def _note(self, seen: str) -> None:
        if not self._seen or self._seen[-1] != seen:
            self._seen.append(seen)
