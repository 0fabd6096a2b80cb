"""Rate limits: one token bucket per user or address."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

MOST_KEYS = 10_000


class RateLimit:
    """Token buckets of the most recent keys; an evicted key starts with a full bucket."""

    def __init__(self, now: Callable[[], float], per_second: float, burst: float) -> None:
        self._now = now
        self._per_second = per_second
        self._burst = burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def admits(self, key: str) -> bool:
        """Take a token for one request; return whether there was one."""
        now = self._now()
        left, since = self._buckets.pop(key, (self._burst, now))
        left = min(self._burst, left + max(0.0, now - since) * self._per_second)
        admitted = left >= 1
        self._buckets[key] = (left - admitted, now)
        if len(self._buckets) > MOST_KEYS:
            self._buckets.popitem(last=False)
        return admitted

    def charge(self, key: str, requests: int) -> None:
        """Charge further tokens to an admitted key; its balance may become negative."""
        left, since = self._buckets.get(key, (self._burst, self._now()))
        self._buckets[key] = (max(left - requests, -self._burst), since)
