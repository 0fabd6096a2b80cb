"""Switch interval of the GIL, adapted to the threads of the process.

Threads that soon block need no short interval. But beside a CPU-bound thread, every other thread waits for the whole
interval after each release of the GIL: while there is one, the interval is short.

Each thread that waits for the GIL also wakes once per interval. If thousands wait, that uses all CPU time, and no
other thread runs. So the intervals grow with the number of threads.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LONG, SHORT = 5e-4, 1e-4
"""Intervals in seconds. A short one at all times would halve the throughput of a hundred agents."""
LONG_PER_THREAD, SHORT_PER_THREAD = 2e-5, 2e-6
"""Seconds by which the number of threads bounds both intervals from below."""
INTERVAL, IDLE_INTERVAL, LONGEST_INTERVAL = 0.02, 0.1, 0.5
"""Seconds between two samples, while a thread works and while none does; from one idle sample to the next it grows."""
GROWTH = 1.1
SAMPLING = 0.02
"""Share of the time that samples may take: of thousands of threads they are taken less often."""
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
        self._long = LONG
        self._is_short = False

    @contextmanager
    def watched(self, turns: Callable[[], int | None]) -> Iterator[None]:
        """Sample the calling thread. `turns` returns how often it has waited; None while it waits."""
        ident = threading.get_ident()
        with self._lock:
            self._members[ident] = _Member(turns)
            if self._thread is None:
                self._start()
            elif not len(self._members) % 64:
                self._set()
        try:
            yield
        finally:
            with self._lock:  # its clock must not be read after its end
                del self._members[ident]
                ended = None if self._members else self._end()
            if ended is not None:
                ended.join(1.0)

    def _start(self) -> None:
        self._long = min(sys.getswitchinterval(), LONG)
        self._set()
        self._ending = threading.Event()
        self._thread = threading.Thread(
            target=self._watch, args=(self._ending,), name="roost-switch-interval", daemon=True
        )
        self._thread.start()

    def _end(self) -> threading.Thread | None:
        self._ending.set()
        self._is_short = False
        self._set(exactly=True)
        ended, self._thread = self._thread, None
        return ended

    def _set(self, *, exactly: bool = False) -> None:
        """Set the interval, if it differs by much or must be exact."""
        count = len(self._members)
        if self._is_short:
            interval = max(min(SHORT, self._long), SHORT_PER_THREAD * count)
        else:
            interval = max(self._long, LONG_PER_THREAD * count)
        if exactly or not 0.8 < interval / sys.getswitchinterval() < 1.25:
            sys.setswitchinterval(interval)

    def _watch(self, ending: threading.Event) -> None:
        pause, until = INTERVAL, 0.0
        while not ending.wait(pause):
            start, now = time.thread_time(), time.monotonic()
            with self._lock:
                if ending.is_set():
                    return
                is_idle, is_cpu_bound = self._sample(now)
                if is_cpu_bound:
                    until = now + CALM
                self._is_short = now < until
                self._set()
            least = min(LONGEST_INTERVAL, max(IDLE_INTERVAL, pause * GROWTH)) if is_idle else INTERVAL
            pause = max(least, (time.thread_time() - start) / SAMPLING)

    def _sample(self, now: float) -> tuple[bool, bool]:
        """Return whether no thread works, and whether one is CPU-bound."""
        is_idle, is_cpu_bound = True, False
        for member in self._members.values():
            turns = member.turns()
            is_idle = is_idle and turns is None
            is_cpu_bound = member.is_cpu_bound(now, turns) or is_cpu_bound
        return is_idle, is_cpu_bound


SAMPLER = _Sampler()
