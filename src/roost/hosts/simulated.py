"""Deterministic host with virtual time: a whole Roost repeats exactly from one seed.

Every worker keeps its event loop and every pump its step, but none has a thread: the simulation picks the next one
with work by the seed, and advances time only when none has work. After a crash nothing runs, not even `finally`.
"""

from __future__ import annotations

import asyncio
import ctypes
import random
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar
from zlib import crc32

from roost.core.values.ids import Ids
from roost.hosts import simulated_threads
from roost.hosts.bell import HostBell
from roost.hosts.pending import HostPending, Together
from roost.hosts.simulated_threads import SimulatedThread
from roost.hosts.virtual_time import VirtualClock, VirtualLoop
from roost.ports import Loop, Pending, Pump

T = TypeVar("T")

PRESSES = 3
MOST_STEPS = 2_000_000
STEPS_A_SECOND = 100
"""Steps per simulated second beyond which the simulation counts as an endless loop; polling takes fewer."""
KEEPERS = ("roost-supervisor", "roost-timers", "roost-webhooks")
"""Loops that only poll for work."""
LOOKING = (*KEEPERS, "roost-worker", "roost-reader")
"""Threads that take part in polling; any other work of theirs is written, and so noticed elsewhere."""
IDLE = 12.0
"""Seconds of polling without work after which time is skipped: longer than the slowest poll."""
LONGEST_SKIP = 3 * 86_400.0
"""Longest skip in seconds, so that retention still runs."""


def _leak(value: object) -> None:
    """Never free an object, so that no `finally` of it runs after a crash."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


class Crash(KeyboardInterrupt):
    """Power loss of the simulated machine. Not an Exception, so that no handler catches it."""


class Stuck(AssertionError):
    """Deadlock: nothing can run any more, and the awaited result has not arrived."""


class SimulatedLoop:
    """Loop of a worker in the simulation."""

    def __init__(
        self,
        host: SimulatedHost,
        name: str,
        main: Callable[[Loop], Coroutine[Any, Any, None]],
        ended: Callable[[Loop, BaseException | None], None],
    ) -> None:
        self.name = name
        self.over: HostPending[None] = HostPending()
        self.frozen_until = 0.0
        self._host = host
        self._ended = ended
        self._asked: float | None = None
        self.loop = VirtualLoop(host.clock, lambda: host.tick())
        self._task = self.loop.create_task(main(self), name=f"{name} main")

    def call(self, act: Callable[..., object], *args: object) -> None:
        if not self.over.done:
            self.loop.call_soon(act, *args)

    def silence(self) -> float:
        now = self._host.clock.monotonic()
        if self._asked is None:
            self._asked = now
            self.call(self._answer)
        return now - self._asked

    def busy_with(self) -> str | None:
        return None

    def abandon(self) -> None:
        self.call(self._task.cancel)

    def join(self) -> None:
        """Do nothing: an ended loop has no thread to join."""

    def freeze(self, seconds: float) -> None:
        """Stop running for `seconds`, like a loop that a brain blocks."""
        self.frozen_until = self._host.clock.monotonic() + seconds

    # --- as the simulation sees it ---------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        return self.over.done

    def can_step(self) -> bool:
        return not self.over.done and self.frozen_until <= self._host.clock.monotonic() and self.loop.has_work()

    def next_time(self) -> float | None:
        if self.over.done:
            return None
        timer = 0.0 if self.loop.has_work() else self.loop.next_timer()
        return None if timer is None else max(timer, self.frozen_until)

    def step(self) -> None:
        try:
            self.loop.step()
        except Crash:
            raise
        except (SystemExit, KeyboardInterrupt) as error:  # ends this worker's thread
            self._end(error)
            return
        if self._task.done():
            failed = None if self._task.cancelled() else self._task.exception()
            self._end(failed)

    def _end(self, error: BaseException | None) -> None:
        self._ended(self, error)
        for _ in range(PRESSES):  # like an ending thread: cancel remaining tasks, for a bounded time
            left = self.loop.unfinished()
            for task in left:
                task.cancel()
            if left:
                self.loop.step()
        self.over.set(None)
        self.discard()

    def discard(self) -> None:
        """Drop all tasks without running or reporting them."""
        for task in self.loop.unfinished():
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            _leak(task)
        if self.over.done:
            self.loop.close()

    def _answer(self) -> None:
        self._asked = None


class SimulatedPump:
    is_over = False

    def __init__(self, host: SimulatedHost, step: Callable[[], None], name: str) -> None:
        self.name = name
        self._host = host
        self._step = step
        self._due: float | None = None
        self._closed = False

    def ring(self) -> None:
        if self._due is None and not self._closed:
            self._due = self._host.clock.monotonic() + self._host.delay()

    def close(self) -> None:
        self._closed = True
        self._due = None

    def can_step(self) -> bool:
        return self._due is not None and self._due <= self._host.clock.monotonic()

    def next_time(self) -> float | None:
        return self._due

    def step(self) -> None:
        self._host.tick()
        self._due = None
        self._step()


class _Later:
    """Delayed call: one step at a given time."""

    is_over = True
    """True: the simulation drops it when it has nothing to do."""
    name = "later"

    def __init__(self, host: SimulatedHost, act: Callable[[], object], seconds: float) -> None:
        self._act: Callable[[], object] | None = act
        self._due = host.clock.monotonic() + seconds
        self._host = host

    def can_step(self) -> bool:
        return self._act is not None and self._due <= self._host.clock.monotonic()

    def next_time(self) -> float | None:
        return self._due if self._act is not None else None

    def step(self) -> None:
        act, self._act = self._act, None
        assert act is not None
        act()


class SimulatedHost:
    """Host whose every choice comes from the seed."""

    def __init__(self, seed: int, *, clock: VirtualClock | None = None) -> None:
        self.clock = clock or VirtualClock()
        self._random = random.Random(seed)
        self._ids = Ids(self._random.getrandbits)
        self.cpu: float | None = 0.0
        """CPU load of the simulated machine; tests may set it."""
        self.mib: float | None = None
        """RAM of the simulated process."""
        self._parts: list[SimulatedLoop | SimulatedPump | _Later | SimulatedThread] = []
        self.steps = 0
        self.trace = 0
        """Checksum of all choices so far and their times."""
        self.tick: Callable[[], object] = lambda: None
        """Called before each call on a loop and each step of a pump; it may raise Crash."""
        self.moved: Callable[[], object] = lambda: None
        """Called when time has passed."""
        self.next_due: Callable[[], float | None] = lambda: None
        """Return the wall-clock time of the next due row of the store; None if there is none, or it is unknown."""
        self.may_skip: Callable[[], bool] = lambda: True
        """Return whether polling could not find work later: with faults, notifications may be lost."""
        self._busy = self.clock.elapsed
        """Time of the last work or skip."""
        self._until = float("inf")

    # --- the port --------------------------------------------------------------------------------

    def new_id(self, kind: str) -> str:
        return self._ids.new(kind, int(self.clock.now() * 1000))

    def jitter(self) -> float:
        return self._random.random()

    def load(self) -> float | None:
        return self.cpu

    def ram(self) -> float | None:
        return self.mib

    def lock(self) -> AbstractContextManager[object]:
        return nullcontext()

    def pending(self) -> HostPending[Any]:
        return HostPending()

    def bell(self) -> HostBell:
        return HostBell()

    def together(self) -> AbstractContextManager[object]:
        return Together()

    def pump(self, name: str, step: Callable[[], None]) -> Pump:
        pump = SimulatedPump(self, step, name)
        self._parts.append(pump)
        return pump

    def start_loop(
        self,
        name: str,
        main: Callable[[Loop], Coroutine[Any, Any, None]],
        ended: Callable[[Loop, BaseException | None], None],
    ) -> Loop:
        loop = SimulatedLoop(self, name, main, ended)
        self._parts.append(loop)
        return loop

    def wait(self, pending: Pending[Any], seconds: float) -> bool:
        assert isinstance(pending, HostPending)
        return simulated_threads.wait(pending, seconds)

    def run_blocking(self, name: str, act: Callable[[], None]) -> None:
        self._parts.append(SimulatedThread(self.clock, act, self.delay()))

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        """Call a function after `seconds`, as if on its own thread."""
        self._parts.append(_Later(self, act, seconds))

    @property
    def loops(self) -> list[SimulatedLoop]:
        """Return the running loops."""
        return [part for part in self._parts if isinstance(part, SimulatedLoop) and not part.is_over]

    # --- running ---------------------------------------------------------------------------------

    def delay(self) -> float:
        """Return the latency of a wake-up: usually almost none, sometimes a while."""
        return self._random.choice((0.0, 0.0, 0.0, 0.0002, 0.003))

    def run(self, scenario: Coroutine[Any, Any, T]) -> T:
        """Run everything until the scenario, a task on its own loop, has ended."""
        result: HostPending[T] = HostPending()

        async def main(loop: Loop) -> None:
            try:
                result.set(await scenario)
            except asyncio.CancelledError:
                raise
            except BaseException as error:  # raised below; some libraries raise errors that are no Exception
                result.fail(error)

        self.start_loop("scenario", main, lambda *_: None)
        while not result.done:
            self._step()
        return result.result()

    def advance(self, seconds: float) -> None:
        """Run everything for `seconds`."""
        self._until = until = self.clock.elapsed + seconds
        try:
            while (following := self._next_time()) is not None and following <= until:
                self._step()
        finally:
            self._until = float("inf")
        self.clock.elapsed = max(self.clock.elapsed, until)

    def _step(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS + STEPS_A_SECOND * self.clock.elapsed:
            raise Stuck("too many steps: the simulation is in an endless loop")
        able = [part for part in self._parts if part.can_step()]
        if able:
            chosen = self._random.randrange(len(able))
            self.trace = crc32(b"%d %d %.6f" % (chosen, len(able), self.clock.now()), self.trace)
            if not able[chosen].name.startswith(LOOKING):
                self._busy = self.clock.elapsed
            able[chosen].step()
            return
        following = self._next_time()
        if following is None:
            raise Stuck("nothing can run any more, and the awaited result has not arrived")
        self.drop_ended()
        self.clock.elapsed = max(self.clock.elapsed, self._skip(following))
        self.moved()

    def drop_ended(self) -> None:
        self._parts = [part for part in self._parts if part.next_time() is not None or not part.is_over]

    def _skip(self, following: float) -> float:
        """Return the time of the next possible work, skipping polls that find nothing."""
        now = self.clock.elapsed
        if now - self._busy < IDLE:
            return following
        if not self.may_skip():
            self._busy = now
            return following
        times = [part.next_time() for part in self._parts if part.name not in KEEPERS]
        due = self.next_due()
        if due is not None:
            times.append(now + due - self.clock.now())
        target = min([now + LONGEST_SKIP, self._until, *(time for time in times if time is not None)])
        self._busy = max(following, target)  # then everything polls again
        return self._busy

    def crash(self) -> None:
        """Simulate a power loss: nothing runs any more."""
        for part in self._parts:
            if isinstance(part, SimulatedLoop):
                part.discard()
        _leak(self)

    def _next_time(self) -> float | None:
        times = [time for part in self._parts if (time := part.next_time()) is not None]
        return min(times, default=None)
