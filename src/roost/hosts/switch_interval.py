"""Switch interval of the GIL, adapted to CPU-bound threads.

Threads that soon block need no short interval. But beside a CPU-bound thread, every other thread waits for the whole
interval after each release of the GIL: while there is one, the interval is short.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LONG, SHORT = 1e-3, 1e-4
"""Intervals in seconds. A short one at all times would halve the throughput of a hundred agents."""
INTERVAL, IDLE_INTERVAL = 0.02, 0.1
"""Seconds between two samples, while a thread works and while none does."""
CPU_BOUND = 0.1
"""Share of CPU time between two samples that makes a thread CPU-bound; the other threads use most of the rest."""
CALM = 0.2
"""Seconds without a CPU-bound thread after which the interval becomes long again."""


class _Member:
    """State of a thread at the last sample."""

    __slots__ = ("clock", "sampled", "seen", "turns", "used")

    def __init__(self, turns: Callable[[], int | None]) -> None:
        self.turns = turns
        self.clock = time.pthread_getcpuclockid(threading.get_ident())
        self.seen: int | None = None
        self.sampled = self.used = 0.0

    def is_cpu_bound(self, now: float, turns: int | None) -> bool:
        """Return whether the thread was CPU-bound since the last sample: it never waited in that time."""
        before, self.seen = self.seen, turns
        if turns is None or turns != before:
            self.sampled = 0.0
            return False
        used = time.clock_gettime(self.clock)
        since, earlier, self.sampled, self.used = self.sampled, self.used, now, used
        return bool(since) and used - earlier > CPU_BOUND * (now - since)


class _Sampler:
    """Sampler of the process, one because the GIL is one. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._members: dict[int, _Member] = {}
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()

    @contextmanager
    def watched(self, turns: Callable[[], int | None]) -> Iterator[None]:
        """Sample the calling thread. `turns` returns how often it has waited; None while it waits."""
        ident = threading.get_ident()
        with self._lock:
            self._members[ident] = _Member(turns)
            if self._thread is None:
                self._start()
        try:
            yield
        finally:
            with self._lock:  # its clock must not be read after its end
                del self._members[ident]
                ended = None if self._members else self._end()
            if ended is not None:
                ended.join(1.0)

    def _start(self) -> None:
        sys.setswitchinterval(min(sys.getswitchinterval(), LONG))
        self._ending = threading.Event()
        self._thread = threading.Thread(
            target=self._watch, args=(self._ending,), name="roost-switch-interval", daemon=True
        )
        self._thread.start()

    def _end(self) -> threading.Thread | None:
        self._ending.set()
        ended, self._thread = self._thread, None
        return ended

    def _watch(self, ending: threading.Event) -> None:
        long = sys.getswitchinterval()
        pause, is_short, until = INTERVAL, False, 0.0
        while not ending.wait(pause):
            with self._lock:
                is_idle, is_cpu_bound = self._sample()
            if is_cpu_bound:
                until = time.monotonic() + CALM
            if (is_cpu_bound or time.monotonic() < until) is not is_short:
                is_short = not is_short
                sys.setswitchinterval(min(SHORT, long) if is_short else long)
            pause = IDLE_INTERVAL if is_idle else INTERVAL
        if is_short:
            sys.setswitchinterval(long)

    def _sample(self) -> tuple[bool, bool]:
        """Return whether no thread works, and whether one is CPU-bound."""
        is_idle, is_cpu_bound, now = True, False, time.monotonic()
        for member in self._members.values():
            turns = member.turns()
            is_idle = is_idle and turns is None
            is_cpu_bound = member.is_cpu_bound(now, turns) or is_cpu_bound
        return is_idle, is_cpu_bound


SAMPLER = _Sampler()
