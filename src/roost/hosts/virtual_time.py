"""Event loop and clock with virtual time, advanced only by the simulation."""

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
    """Clock in seconds since START, advanced only by the simulation."""

    def __init__(self) -> None:
        self.elapsed = 0.0
        self.shift = 0.0
        """Offset of the wall clock in seconds."""

    def now(self) -> float:
        return START + self.elapsed + self.shift

    def monotonic(self) -> float:
        return self.elapsed


class _NoSelector(selectors.BaseSelector):
    """Selector without descriptors that never waits: the simulation advances time."""

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        raise OSError("a simulation has no descriptors")

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        raise KeyError(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return {}


class VirtualLoop(asyncio.SelectorEventLoop):
    """Event loop that the simulation steps, with the simulation's clock."""

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
        """Return unfinished tasks in order of creation: the order of a set would not be deterministic."""
        return [task for _, task in sorted(self._tasks.items()) if not task.done()]

    def time(self) -> float:
        return self._clock.monotonic()

    def has_work(self) -> bool:
        return bool(self._ready) or (self.next_timer() or 1e18) <= self.time()

    def next_timer(self) -> float | None:
        timers = self._scheduled
        while timers and timers[0].cancelled():  # as the standard loop does
            self._timer_cancelled_count -= 1
            heapq.heappop(timers)._scheduled = False  # type: ignore[attr-defined]
        return timers[0].when() if timers else None

    def step(self) -> None:
        """Run the callbacks that are ready now."""
        self.call_soon(self.stop)
        self.run_forever()

    def _run_once(self) -> None:
        """Run one iteration like asyncio, without descriptors; `tick` may raise before each call."""
        self.next_timer()  # drops cancelled timers
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
        """Do nothing: there are no descriptors to close."""

    # No self-pipe: there are no other threads to wake the loop.
    def _make_self_pipe(self) -> None: ...

    def _close_self_pipe(self) -> None: ...

    def _write_to_self(self) -> None: ...
