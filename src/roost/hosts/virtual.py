"""An event loop and a clock with virtual time: both move only when they are told to."""

from __future__ import annotations

import asyncio
import heapq
import selectors
import weakref
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

START = 1_800_000_000.0


class VirtualClock:
    """Seconds since START; moved by the simulation only."""

    def __init__(self) -> None:
        self.elapsed = 0.0
        self.shift = 0.0
        """What people's clocks were set forward or back by."""

    def now(self) -> float:
        return START + self.elapsed + self.shift

    def monotonic(self) -> float:
        return self.elapsed


class _NoSelector(selectors.BaseSelector):
    """Has no descriptors and never waits: time is moved by the simulation."""

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        raise OSError("there are no descriptors in a simulation")

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        raise KeyError(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return {}


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop that is told when to take a step, and reads the simulation's clock."""

    _scheduled: list[asyncio.TimerHandle]
    _ready: Any
    _timer_cancelled_count: int

    def __init__(self, clock: VirtualClock, tick: Callable[[], object]) -> None:
        self._clock = clock
        self._tick = tick
        self._numbers = count()
        self._tasks: weakref.WeakValueDictionary[int, asyncio.Task[Any]] = weakref.WeakValueDictionary()
        super().__init__(_NoSelector())
        self.set_task_factory(self._make_task)

    def _make_task(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(coroutine, loop=loop, **options)
        self._tasks[next(self._numbers)] = task
        return task

    def unfinished(self) -> list[asyncio.Task[Any]]:
        """Its tasks that are not done, in the order in which they were made: that of a set would not repeat."""
        return [task for _, task in sorted(self._tasks.items()) if not task.done()]

    def time(self) -> float:
        return self._clock.monotonic()

    def has_work(self) -> bool:
        return bool(self._ready) or (self.next_timer() or 1e18) <= self.time()

    def next_timer(self) -> float | None:
        timers = self._scheduled
        while timers and timers[0].cancelled():  # as the loop itself does when it comes to them
            self._timer_cancelled_count -= 1
            heapq.heappop(timers)._scheduled = False  # type: ignore[attr-defined]
        return timers[0].when() if timers else None

    def step(self) -> None:
        """Run what is ready now, once."""
        self.call_soon(self.stop)
        self.run_forever()

    def _run_once(self) -> None:
        """What asyncio does there, but for descriptors; before each of the calls `tick` may raise."""
        self.next_timer()  # which drops those that were cancelled
        timers, latest = self._scheduled, self.time() + 1e-9
        while timers and timers[0].when() < latest:
            timer = heapq.heappop(timers)
            timer._scheduled = False  # type: ignore[attr-defined]
            self._ready.append(timer)
        for _ in range(len(self._ready)):
            handle = self._ready.popleft()
            if not handle._cancelled:
                self._tick()
                handle._run()

    def __del__(self) -> None:
        """There is nothing to close: it has no descriptors."""

    # The pipe by which other threads wake a loop is not needed: there are no other threads.
    def _make_self_pipe(self) -> None: ...

    def _close_self_pipe(self) -> None: ...

    def _write_to_self(self) -> None: ...
