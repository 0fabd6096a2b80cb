"""One deterministic loop with virtual time: a whole Roost repeats exactly from one seed.

Every worker keeps an event loop of its own and every pump its step, but none has a thread: the
simulation picks, by the seed, which of those that have something to do goes next, and moves the time
only when none has. A crash stops picking: nothing runs any more, no `finally` either.
"""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar
from zlib import crc32

from roost.core.ids import Ids
from roost.hosts.pending import HostPending, Together
from roost.hosts.virtual import VirtualClock, VirtualLoop
from roost.ports import Loop, Pump

T = TypeVar("T")

PRESSES = 3
MOST_STEPS = 2_000_000


def _keep_for_ever(thing: object) -> None:
    """What a crash left behind is never collected, so that no `finally` of it ever runs."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


class Crash(KeyboardInterrupt):
    """The simulated machine loses its power here. Not an Exception, so that nothing on the way catches it."""


class Stuck(AssertionError):
    """Nothing can happen any more, and what was waited for has not come."""


class SimulatedLoop:
    """A worker's loop in the simulation."""

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
        """Nothing is left of it once it is over."""

    def freeze(self, seconds: float) -> None:
        """It does nothing for so long, like a loop that a brain blocks."""
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
        except (SystemExit, KeyboardInterrupt) as error:  # this worker's thread dies
            self._end(error)
            return
        if self._task.done():
            failed = None if self._task.cancelled() else self._task.exception()
            self._end(failed)

    def _end(self, error: BaseException | None) -> None:
        self._ended(self, error)
        for _ in range(PRESSES):  # like a thread that ends: what is left is cancelled, for a bounded time
            left = self.loop.unfinished()
            for task in left:
                task.cancel()
            if left:
                self.loop.step()
        self.over.set(None)
        self.bury()

    def bury(self) -> None:
        """Nothing of it runs again, and nothing complains of that."""
        for task in self.loop.unfinished():
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            _keep_for_ever(task)
        if self.over.done:
            self.loop.close()

    def _answer(self) -> None:
        self._asked = None


class SimulatedPump:
    is_over = False

    def __init__(self, host: SimulatedHost, step: Callable[[], None]) -> None:
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


class _Blocking:
    """A blocking function, or something put off: one step, at some moment."""

    is_over = True
    """It is kept as long as it has something to do."""

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
    """A host whose every choice comes from the seed."""

    def __init__(self, seed: int, *, clock: VirtualClock | None = None) -> None:
        self.clock = clock or VirtualClock()
        self._random = random.Random(seed)
        self._ids = Ids(self._random.getrandbits)
        self.cpu: float | None = 0.0
        """The load of the simulated machine; set it as you like."""
        self.mib: float | None = None
        """The memory of the simulated process."""
        self._parts: list[SimulatedLoop | SimulatedPump | _Blocking] = []
        self.steps = 0
        self.trace = 0
        """A number that stands for all that was chosen so far, and when."""
        self.tick: Callable[[], object] = lambda: None
        """Called before each call on a loop and each step of a pump; it may raise Crash."""
        self.moved: Callable[[], object] = lambda: None
        """Called when time has passed."""

    # --- the port --------------------------------------------------------------------------------

    def new_id(self, kind: str) -> str:
        return self._ids.new(kind, int(self.clock.now() * 1000))

    def jitter(self) -> float:
        return self._random.random()

    def load(self) -> float | None:
        return self.cpu

    def memory(self) -> float | None:
        return self.mib

    def lock(self) -> AbstractContextManager[object]:
        return nullcontext()

    def pending(self) -> HostPending[Any]:
        return HostPending()

    def together(self) -> AbstractContextManager[object]:
        return Together()

    def pump(self, name: str, step: Callable[[], None]) -> Pump:
        pump = SimulatedPump(self, step)
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

    def run_blocking(self, name: str, act: Callable[[], None]) -> None:
        self._parts.append(_Blocking(self, act, self.delay()))

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        """Have it done after so long, as if by a thread of its own."""
        self._parts.append(_Blocking(self, act, seconds))

    @property
    def loops(self) -> list[SimulatedLoop]:
        """Those that are not over."""
        return [part for part in self._parts if isinstance(part, SimulatedLoop) and not part.is_over]

    # --- running ---------------------------------------------------------------------------------

    def delay(self) -> float:
        """How long a part takes to notice that it was rung: usually hardly any time, sometimes a while."""
        return self._random.choice((0.0, 0.0, 0.0, 0.0002, 0.003))

    def run(self, scenario: Coroutine[Any, Any, T]) -> T:
        """Run everything until the scenario, a task on a loop of its own, has ended."""
        result: HostPending[T] = HostPending()

        async def main(loop: Loop) -> None:
            try:
                result.set(await scenario)
            except Exception as error:  # it is raised below, where the scenario was started
                result.fail(error)

        self.start_loop("scenario", main, lambda *_: None)
        while not result.done:
            self._step()
        return result.result()

    def advance(self, seconds: float) -> None:
        """Let everything run for so long."""
        until = self.clock.elapsed + seconds
        while (following := self._next_time()) is not None and following <= until:
            self._step()
        self.clock.elapsed = max(self.clock.elapsed, until)

    def _step(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise Stuck("the simulation takes too many steps: something runs in circles")
        able = [part for part in self._parts if part.can_step()]
        if able:
            chosen = self._random.randrange(len(able))
            self.trace = crc32(b"%d %d %.6f" % (chosen, len(able), self.clock.now()), self.trace)
            able[chosen].step()
            return
        following = self._next_time()
        if following is None:
            raise Stuck("nothing can happen any more, and what was waited for has not come")
        self._parts = [part for part in self._parts if part.next_time() is not None or not part.is_over]
        self.clock.elapsed = max(self.clock.elapsed, following)
        self.moved()

    def crash(self) -> None:
        """Cut the power: nothing runs any more."""
        for part in self._parts:
            if isinstance(part, SimulatedLoop):
                part.bury()
        _keep_for_ever(self)

    def _next_time(self) -> float | None:
        times = [time for part in self._parts if (time := part.next_time()) is not None]
        return min(times, default=None)
