"""Blocking calls in a simulation: real threads, of which the simulation runs one at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable

from roost.hosts.pending import HostPending
from roost.ports import Clock


class _Here(threading.local):
    call: SimulatedThread | None = None


_here = _Here()


class SimulatedThread:
    """One blocking call in the simulation.

    It has its own thread. The simulation pauses while that thread runs, and continues when it ends or waits for a
    result, so the seed alone decides the order.
    """

    is_over = True
    """True: the simulation drops it when it has nothing to do."""
    name = "baton"

    def __init__(self, clock: Clock, act: Callable[[], object], seconds: float) -> None:
        self._clock = clock
        self._act = act
        self._due: float | None = clock.monotonic() + seconds
        self._awaited: HostPending[object] | None = None
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._call_runs = threading.Lock()
        self._simulation_runs = threading.Lock()
        self._call_runs.acquire()
        self._simulation_runs.acquire()

    # --- as the simulation sees it ---------------------------------------------------------------

    def can_step(self) -> bool:
        time = self.next_time()
        return time is not None and time <= self._clock.monotonic()

    def next_time(self) -> float | None:
        return 0.0 if self._awaited is not None and self._awaited.done else self._due

    def step(self) -> None:
        self._awaited = self._due = None
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="simulated blocking call", daemon=True)
            self._thread.start()
        else:
            self._call_runs.release()
        self._simulation_runs.acquire()
        if self._due is None:
            self._thread.join()
        if self._error is not None:
            raise self._error

    # --- on its thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        _here.call = self
        try:
            self._act()
        except BaseException as error:
            self._error = error
        finally:
            self._simulation_runs.release()

    def _wait(self, pending: HostPending[object], seconds: float) -> None:
        self._awaited, self._due = pending, self._clock.monotonic() + seconds
        self._simulation_runs.release()
        self._call_runs.acquire()


def wait(pending: HostPending[object], seconds: float) -> bool:
    """Run the simulation until the result is set, for at most `seconds`; return whether it is set."""
    if _here.call is None:
        raise RuntimeError("in a simulation only the thread of a brain, a step or a tool can wait: do not start others")
    if not pending.done:
        _here.call._wait(pending, seconds)
    return pending.done
