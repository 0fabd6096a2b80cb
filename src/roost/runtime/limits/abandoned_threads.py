"""Registry of threads that were given up because code blocks them: a thread cannot be killed, only replaced."""

from __future__ import annotations

from roost.core.failures.faults import Fault
from roost.core.limits.limits import Limits
from roost.errors import BrainFailed
from roost.ports import Host, Loop


class Thread:
    """A function on a thread of its own, which may be given up before it returns."""

    def __init__(self, registry: AbandonedThreads) -> None:
        self._registry = registry
        self._is_over = False
        self._is_left = False

    def give_up(self) -> bool:
        """Count it until it returns; False: it has returned."""
        with self._registry.lock:
            if not self._is_over and not self._is_left:
                self._is_left = True
                self._registry.functions += 1
            return not self._is_over

    def returned(self) -> None:
        with self._registry.lock:
            self._is_over = True
            self._registry.functions -= self._is_left


class AbandonedThreads:
    """Any thread may call. A loop or a function is counted until its thread has returned."""

    def __init__(self, host: Host, limits: Limits) -> None:
        self._limits = limits
        self.lock = host.lock()
        self._loops: list[Loop] = []
        self.functions = 0
        """Functions that were given up and have not returned."""

    def thread(self) -> Thread:
        """Make room for a function on a thread. BrainFailed: too many that were given up have not returned."""
        if (problem := self.problem) is not None:
            raise BrainFailed(problem, kind=Fault.BLOCKED)
        return Thread(self)

    @property
    def problem(self) -> str | None:
        """Return why no function may be run on a thread now, for people."""
        most = self._limits.blocked_functions
        if self.functions < most:
            return None
        return (
            f"{self.functions} functions that were given up still block their threads (blocked_functions = {most}):"
            " nothing that may block is begun until some return; find them in the log, or restart Roost"
        )

    def add(self, loop: Loop) -> None:
        """Tell the loop to end when it can, and count it until then."""
        loop.abandon()
        with self.lock:
            self._loops = [*self._unreturned(), loop]

    @property
    def count(self) -> int:
        return self.loops + self.functions

    @property
    def loops(self) -> int:
        return len(self._unreturned())

    @property
    def is_full(self) -> bool:
        """Return True while no further loop may be given up and replaced."""
        return self.loops > self._limits.blocked_loops

    def _unreturned(self) -> list[Loop]:
        return [loop for loop in self._loops if not loop.over.done]
