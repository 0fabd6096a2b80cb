"""Clock of a node in a cluster: the time of the database, so that all nodes agree."""

from __future__ import annotations

import time
from collections import deque

KEPT = 8
"""Measurements of which the most exact one counts."""


class StoreClock:
    """Monotonic time plus an offset that each renewal of the lease measures. Any thread may call."""

    monotonic = staticmethod(time.monotonic)

    def __init__(self) -> None:
        # 1970 until the first measurement: ids never go back, so the clock of a machine that is ahead must not count.
        self._offset = -time.monotonic()
        self._measured: deque[tuple[float, float]] = deque(maxlen=KEPT)
        self.error = 0.0
        """Seconds by which it may differ from the time of the database."""

    def now(self) -> float:
        return time.monotonic() + self._offset

    def adjust(self, now: float, sent: float, received: float) -> None:
        """Follow the database, whose time was `now` between these two moments of the monotonic clock."""
        self._measured.append(((received - sent) / 2, now - (sent + received) / 2))
        self.error, self._offset = min(self._measured)
