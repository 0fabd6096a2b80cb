"""How often one may ask: a bucket per user or address, which fills up again by itself."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

MOST_KEYS = 10_000


class Rates:
    """Remembers the most recent askers; one it has forgotten starts with a full bucket."""

    def __init__(self, now: Callable[[], float], per_second: float, burst: float) -> None:
        self._now = now
        self._per_second = per_second
        self._burst = burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def admits(self, key: str) -> bool:
        """Whether this one may ask once more; counts it if so."""
        now = self._now()
        left, since = self._buckets.pop(key, (self._burst, now))
        left = min(self._burst, left + max(0.0, now - since) * self._per_second)
        admitted = left >= 1
        self._buckets[key] = (left - admitted, now)
        if len(self._buckets) > MOST_KEYS:
            self._buckets.popitem(last=False)
        return admitted
