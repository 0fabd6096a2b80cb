"""Rate limits: one token bucket per user or address.

In a cluster each node has buckets of its own, with its share of the limit: a client that uses several nodes gets no
more.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

MOST_KEYS = 10_000


Nodes = Callable[[], int]
"""Returns the number of nodes that share a limit."""


class RateLimit:
    """Token buckets of the most recent keys; an evicted key starts with a full bucket."""

    def __init__(self, now: Callable[[], float], per_second: float, burst: float, nodes: Nodes = lambda: 1) -> None:
        self._now = now
        self._nodes = nodes
        self._per_second = per_second
        self._burst = burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def admits(self, key: str) -> bool:
        """Take a token for one request; return whether there was one."""
        now, most = self._now(), self._most
        left, since = self._buckets.pop(key, (most, now))
        left = min(most, left + max(0.0, now - since) * self._per_second / self._nodes())
        admitted = left >= 1
        self._buckets[key] = (left - admitted, now)
        if len(self._buckets) > MOST_KEYS:
            self._buckets.popitem(last=False)
        return admitted

    def charge(self, key: str, requests: int) -> None:
        """Charge further tokens to an admitted key; its balance may become negative."""
        most = self._most
        left, since = self._buckets.get(key, (most, self._now()))
        self._buckets[key] = (max(left - requests, -most), since)

    def delay(self, key: str) -> float:
        """Return the seconds until there is a token."""
        now, most = self._now(), self._most
        left, since = self._buckets.get(key, (most, now))
        return max(0.0, (min(1.0, most) - left) * self._nodes() / self._per_second - (now - since))

    @property
    def _most(self) -> float:
        """Size of a bucket; a limit that is smaller than the number of nodes still admits requests."""
        return max(min(1.0, self._burst), self._burst / self._nodes())
