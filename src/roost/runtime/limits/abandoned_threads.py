"""Registry of abandoned threads: a thread that blocks cannot be killed, only replaced."""

from __future__ import annotations

from roost.core.failures.faults import Fault
from roost.core.limits.limits import Limits
from roost.errors import BrainFailed
from roost.ports import Host, Loop


class Thread:
    """Thread of one function; it may be abandoned before it returns."""

    def __init__(self, registry: AbandonedThreads) -> None:
        self._registry = registry
        self._is_over = False
        self._is_left = False

    def give_up(self) -> bool:
        """Abandon the thread and count it until it returns; return False if it has returned."""
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
    """Count of abandoned loops and functions, until their threads return. Any thread may call."""

    def __init__(self, host: Host, limits: Limits) -> None:
        self._limits = limits
        self.lock = host.lock()
        self._loops: list[Loop] = []
        self.functions = 0
        """Number of abandoned functions that have not returned."""

    def thread(self) -> Thread:
        """Return a thread for a function. Raises BrainFailed if too many abandoned functions still run."""
        if (problem := self.problem) is not None:
            raise BrainFailed(problem, kind=Fault.BLOCKED)
        return Thread(self)

    @property
    def problem(self) -> str | None:
        """Return the reason why no function may be started, for users."""
        most = self._limits.blocked_functions
        if self.functions < most:
            return None
        return (
            f"{self.functions} abandoned functions still block their threads (blocked_functions = {most}):"
            " no blocking function is started until some return; find them in the log, or restart Roost"
        )

    def add(self, loop: Loop) -> None:
        """Abandon a loop, and count it until its thread has ended."""
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
        """Return True while no further loop may be abandoned."""
        return self.loops > self._limits.blocked_loops

    def _unreturned(self) -> list[Loop]:
        return [loop for loop in self._loops if not loop.over.done]
