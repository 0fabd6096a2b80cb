"""Crossing: how the thread of a blocking brain has something done on the loop of its turn, and waits for it."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from roost.errors import BrainFailed
from roost.ports import Host, Loop, Pending
from roost.ports.plain import TurnStopped

T = TypeVar("T")

LOOK = 5.0
"""Seconds between two looks whether the loop is still there."""


class ThreadBridge:
    """The only way from the thread of one blocking brain to the loop of its turn. Made on that loop."""

    def __init__(self, host: Host, loop: Loop, name: str) -> None:
        self._host = host
        self._loop = loop
        self._aloop = asyncio.get_running_loop()
        self._name = name
        self._closed = False
        self._waiting: list[Pending[None]] = []
        """One per waiting thread; `list.append/remove` are atomic, and so is a copy."""
        self._tasks: set[asyncio.Task[None]] = set()

    def __call__(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run the coroutine on the loop, block until it has ended, and return or raise what it does.

        Raises TurnStopped at once when the turn is stopped or over.
        """
        if asyncio._get_running_loop() is self._aloop:
            raise BrainFailed("a plain turn is used on the loop of its turn, which would block: use it on a thread")
        ended: list[Callable[[], T]] = []
        bell: Pending[None] = self._host.pending()
        self._waiting.append(bell)
        try:
            if not self._closed:
                self._loop.call(self._start, make, ended, bell, contextvars.copy_context())
            while not self._closed and not self._host.wait(bell, LOOK) and not self._loop.over.done:
                pass
        finally:
            self._waiting.remove(bell)
        if not ended:
            raise TurnStopped("the turn was stopped or is over: nothing that it does counts any more")
        return ended[0]()

    def _start(
        self,
        make: Callable[[], Coroutine[Any, Any, T]],
        ended: list[Callable[[], T]],
        bell: Pending[None],
        context: contextvars.Context,
    ) -> None:
        if not self._closed:
            task = self._aloop.create_task(_run(make, ended, bell), name=self._name, context=context)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Release every waiting thread with TurnStopped, and admit none from now on; on any thread."""
        self._closed = True
        for bell in self._waiting.copy():
            bell.set(None)

    async def finish(self, patience: float) -> None:
        """Close it and cancel what is still being done; on the loop."""
        self.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=patience)


async def _run(make: Callable[[], Coroutine[Any, Any, T]], ended: list[Callable[[], T]], bell: Pending[None]) -> None:
    try:
        result = await make()
        ended.append(lambda: result)
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # SystemExit too, which would end the loop
        ended.append(_raising(error))
    finally:
        bell.set(None)


def _raising(error: BaseException) -> Callable[[], Any]:
    def fail() -> Any:
        raise error

    return fail
