"""Bridge from the thread of a blocking brain to the loop of its turn."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from roost.errors import BrainFailed
from roost.ports import Host, Loop, Pending
from roost.ports.plain import TurnStopped

T = TypeVar("T")

CHECK_INTERVAL = 5.0
"""Seconds between two checks that the loop still runs."""


class ThreadBridge:
    """Runs coroutines on the loop of a turn for the thread of its blocking brain. Created on that loop."""

    def __init__(self, host: Host, loop: Loop, name: str) -> None:
        self._host = host
        self._loop = loop
        self._aloop = asyncio.get_running_loop()
        self._name = name
        self._closed = False
        self._waiting: list[Pending[None]] = []
        """One result per waiting thread; `append`, `remove` and `copy` of a list are atomic."""
        self._tasks: set[asyncio.Task[None]] = set()

    def __call__(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run the coroutine on the loop, block until it has ended, and return its result or raise its error.

        Raises TurnStopped at once when the turn is stopped or over.
        """
        if asyncio._get_running_loop() is self._aloop:
            raise BrainFailed("a plain turn is used on the loop of its turn, which would block: use it on a thread")
        ended: list[Callable[[], T]] = []
        done: Pending[None] = self._host.pending()
        self._waiting.append(done)
        try:
            if not self._closed:
                self._loop.call(self._start, make, ended, done, contextvars.copy_context())
            while not self._closed and not self._host.wait(done, CHECK_INTERVAL) and not self._loop.over.done:
                pass
        finally:
            self._waiting.remove(done)
        if not ended:
            raise TurnStopped("the turn was stopped or is over: its further actions have no effect")
        return ended[0]()

    def _start(
        self,
        make: Callable[[], Coroutine[Any, Any, T]],
        ended: list[Callable[[], T]],
        done: Pending[None],
        context: contextvars.Context,
    ) -> None:
        if not self._closed:
            task = self._aloop.create_task(_run(make, ended, done), name=self._name, context=context)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Release every waiting thread with TurnStopped and refuse later calls; on any thread."""
        self._closed = True
        for done in self._waiting.copy():
            done.set(None)

    async def finish(self, patience: float) -> None:
        """Close the bridge and cancel the running coroutines; on the loop."""
        self.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=patience)


async def _run(make: Callable[[], Coroutine[Any, Any, T]], ended: list[Callable[[], T]], done: Pending[None]) -> None:
    try:
        result = await make()
        ended.append(lambda: result)
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # SystemExit would end the loop
        ended.append(_raising(error))
    finally:
        done.set(None)


def _raising(error: BaseException) -> Callable[[], Any]:
    def fail() -> Any:
        raise error

    return fail
