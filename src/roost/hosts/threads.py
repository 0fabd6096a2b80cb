"""Host with real threads and real time, used outside of simulations."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from functools import partial
from typing import Any
from weakref import WeakSet

from roost.core.values.ids import Ids
from roost.hosts.bell import HostBell
from roost.hosts.lazy_loop import LazyLoop
from roost.hosts.pending import PATIENCE, HostPending, Together, call_on, wake_stalled
from roost.hosts.switch_interval import SAMPLER
from roost.ports import Clock, Loop, Pending, Pump

log = logging.getLogger("roost.threads")


class RealClock:
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)


class ThreadPump:
    """Thread that sleeps on a lock until it is woken."""

    def __init__(self, name: str, step: Callable[[], None]) -> None:
        self._step = step
        self._closing = False
        self._gate = threading.Lock()
        self._gate.acquire()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def ring(self) -> None:
        try:
            self._gate.release()
        except RuntimeError:
            return  # already woken

    def close(self) -> None:
        self._closing = True
        self.ring()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while True:
            while not self._gate.acquire(timeout=PATIENCE if wake_stalled() else -1):
                pass
            if self._closing:
                return
            try:
                self._step()
            except Exception:  # the thread continues: without it nothing could be written
                log.exception("step failed; continuing", extra={"thread": self._thread.name})


class _Unawaited(threading.Event):
    """Event without waiters."""

    def wait(self, timeout: float | None = None) -> bool:
        return True


_STARTING = threading.Semaphore(64)
"""Threads that may start at the same time: thousands that wait for the GIL would slow down everything."""


def _start(name: str, run: Callable[[], None]) -> threading.Thread:
    """Start a thread without waiting until it runs, which takes most of the time of `start`.

    Without the private attribute of CPython it only is slower.
    """

    def begin() -> None:
        if is_unawaited:
            _STARTING.release()
        run()

    thread = threading.Thread(target=begin, name=name, daemon=True)
    if is_unawaited := _STARTING.acquire(blocking=False):
        thread._started = _Unawaited()  # type: ignore[attr-defined]
    try:
        thread.start()
    except BaseException:  # the system has no more threads
        if is_unawaited:
            _STARTING.release()
        raise
    return thread


class _Main(asyncio.Task[None]):
    """Main task of a loop; records the task that ended it."""

    culprit: str | None = None

    def cancel(self, msg: object = None) -> bool:
        current = asyncio.current_task(self.get_loop())
        self.culprit = current.get_name() if current is not None else None
        return super().cancel(msg)


class ThreadLoop:
    """Thread with an event loop."""

    def __init__(
        self,
        name: str,
        main: Callable[[Loop], Coroutine[Any, Any, None]],
        ended: Callable[[Loop, BaseException | None], None],
    ) -> None:
        self.name = name
        self._main = main
        self._ended = ended
        self.over: HostPending[None] = HostPending()
        self._asked: float | None = None
        self._task: _Main | None = None
        self._culprit: str | None = None
        """Name of the task that ended the loop."""
        self._loop = LazyLoop()
        self._tasks: WeakSet[asyncio.Task[Any]] = WeakSet()
        self._loop.set_task_factory(self._make_task)
        self._thread = _start(name, self._run)

    def call(self, act: Callable[..., object], *args: object) -> None:
        call_on(self._loop, partial(act, *args) if args else act)

    def silence(self) -> float:
        now, asked = time.monotonic(), self._asked
        if self._loop.is_idle:  # no need to wake it
            self._asked = None
            return 0.0
        if asked is None:
            asked = self._asked = now
            self.call(self._answer)  # the answer may arrive before this line returns
        return now - asked

    def busy_with(self) -> str | None:
        task = asyncio.current_task(self._loop)
        return task.get_name() if task is not None else self._culprit

    def abandon(self) -> None:
        self.call(self._cancel)

    def join(self) -> None:
        """Join the thread; call it only once the loop is `over`."""
        if self._thread is not threading.current_thread():
            self._thread.join(1.0)

    def _make_task(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        """Create a task. Tasks started by a brain get its name, so that a blocked loop is attributed to it."""
        task = asyncio.Task(coroutine, loop=loop, **options)
        if options.get("name") is None and (parent := asyncio.current_task(loop)) is not None:
            task.set_name(parent.get_name())
        self._tasks.add(task)
        return task

    def _answer(self) -> None:
        self._asked = None

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _run(self) -> None:
        with SAMPLER.watched(self._turns):
            self._run_all()

    def _turns(self) -> int | None:
        lazy = self._loop.lazy
        return None if lazy.idle else lazy.turns

    def _run_all(self) -> None:
        error: BaseException | None = None
        try:
            asyncio.set_event_loop(self._loop)
            self._task = _Main(self._main(self), loop=self._loop, name=f"{self.name} main")
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            self._culprit = self._task.culprit if self._task is not None else None
        except BaseException as crash:  # every crash must reach the supervisor
            error, self._culprit = crash, self._raised_by(crash)
        finally:
            self._ended(self, error)
            self._close()
            self.over.set(None)

    def _raised_by(self, crash: BaseException) -> str | None:
        """Return the name of the task that raised it through the loop."""
        ended = (task for task in self._tasks if task.done() and not task.cancelled())
        return next((task.get_name() for task in ended if task.exception() is crash), None)

    def _close(self) -> None:
        """Cancel remaining tasks, for a bounded time: a task that does not end must not block the thread."""
        try:
            left = [task for task in self._tasks if not task.done()]  # asyncio's own list covers all threads
            for task in left:
                task.cancel()
            if left:
                self._loop.run_until_complete(asyncio.wait(left, timeout=1.0))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        except BaseException:  # nobody can handle errors of dying tasks
            return
        finally:
            for pending in [self._task, *self._tasks]:  # a crash and abandoned tasks are reported already
                if pending is not None and not pending.done():
                    pending._log_destroy_pending = False  # type: ignore[union-attr]
            self._loop.close()


class ThreadHost:
    """Host of every Roost outside of simulations."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock: Clock = clock or RealClock()
        self._random = random.Random(os.urandom(32))
        self._ids = Ids(self._random.getrandbits)
        self._times = _processor_times()

    def new_id(self, kind: str) -> str:
        return self._ids.new(kind, int(self.clock.now() * 1000))

    def jitter(self) -> float:
        return self._random.random()

    def load(self) -> float | None:
        before, self._times = self._times, _processor_times()
        busy, total = self._times[0] - before[0], self._times[1] - before[1]
        return busy / total if total > 0 else None

    def ram(self) -> float | None:
        try:
            with open("/proc/self/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
        except (OSError, ValueError):
            return None

    def lock(self) -> AbstractContextManager[object]:
        return threading.Lock()

    def pending(self) -> HostPending[Any]:
        return HostPending()

    def bell(self) -> HostBell:
        return HostBell()

    def together(self) -> AbstractContextManager[object]:
        return Together()

    def pump(self, name: str, step: Callable[[], None]) -> Pump:
        return ThreadPump(name, step)

    def start_loop(
        self,
        name: str,
        main: Callable[[Loop], Coroutine[Any, Any, None]],
        ended: Callable[[Loop, BaseException | None], None],
    ) -> Loop:
        return ThreadLoop(name, main, ended)

    def wait(self, pending: Pending[Any], seconds: float) -> bool:
        assert isinstance(pending, HostPending)
        return pending.block(seconds)

    def run_blocking(self, name: str, act: Callable[[], None]) -> None:
        def run() -> None:
            with SAMPLER.watched(lambda: 0):
                act()

        threading.Thread(target=run, name=name, daemon=True).start()


def _processor_times() -> tuple[float, float]:
    """Return busy and total CPU time; zeros if the system does not report them."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            times = [float(word) for word in file.readline().split()[1:9]]
    except (OSError, ValueError):
        return 0.0, 0.0
    idle = sum(times[3:5])
    return sum(times) - idle, sum(times)
