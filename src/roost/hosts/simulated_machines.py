"""Several simulated machines on one clock: one seed picks the next step among all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from roost.hosts.simulated import MOST_STEPS, STEPS_A_SECOND, Crash, SimulatedHost, Stuck
from roost.hosts.virtual_time import VirtualClock


@dataclass(eq=False)
class Machine:
    """A machine that can be frozen and crashed alone."""

    host: SimulatedHost
    frozen_until: float = 0.0
    freezes: list[tuple[float, float]] = field(default_factory=list)
    """Times at which it was frozen, from and until."""

    def freeze(self, seconds: float) -> None:
        """Run nothing for `seconds`, like a process that is stopped."""
        now = self.host.clock.monotonic()
        self.frozen_until = max(self.frozen_until, now + seconds)
        self.freezes.append((now, self.frozen_until))

    def can_step(self) -> bool:
        return self.frozen_until <= self.host.clock.monotonic()


class SimulatedMachines(SimulatedHost):
    """Host of the scenario, and scheduler of all machines. A Crash on a machine ends only that machine."""

    def __init__(self, seed: int, *, clock: VirtualClock) -> None:
        super().__init__(seed, clock=clock)
        self.machines: list[Machine] = []
        self.crashed: Callable[[Machine], object] = self.remove
        """Called when a machine has crashed; it must remove it."""

    def add(self, host: SimulatedHost) -> Machine:
        machine = Machine(host)
        self.machines.append(machine)
        return machine

    def remove(self, machine: Machine) -> None:
        """Cut the power of a machine: nothing of it runs any more."""
        if machine in self.machines:
            self.machines.remove(machine)
            machine.host.crash()

    def _step(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS + STEPS_A_SECOND * self.clock.elapsed:
            raise Stuck("too many steps: the simulation is in an endless loop")
        able: list[tuple[Machine | None, Any]] = [(None, part) for part in self._parts if part.can_step()]
        for machine in self.machines:
            if machine.can_step():
                able += [(machine, part) for part in machine.host._parts if part.can_step()]
        if not able:
            self._pass_time()
            return
        chosen = self._random.randrange(len(able))
        self.trace = crc32(b"%d %d %.6f" % (chosen, len(able), self.clock.now()), self.trace)
        owner, part = able[chosen]
        try:
            part.step()
        except Crash:
            if owner is None:
                raise
            self.crashed(owner)

    def _pass_time(self) -> None:
        following = self._next_time()
        if following is None:
            raise Stuck("nothing can run any more, and the awaited result has not arrived")
        for host in (self, *(machine.host for machine in self.machines)):
            host.drop_ended()
        self.clock.elapsed = max(self.clock.elapsed, following)
        self.moved()

    def _next_time(self) -> float | None:
        times = [super()._next_time()]
        for machine in self.machines:
            following = machine.host._next_time()
            times.append(None if following is None else max(following, machine.frozen_until))
        return min((time for time in times if time is not None), default=None)

    def crash(self) -> None:
        for machine in list(self.machines):
            self.remove(machine)
        super().crash()
