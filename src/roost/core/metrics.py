"""Metrics: numbers about the whole program. None is about one agent, one person or anything they said."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 600.0)
"""The upper bounds of the buckets of durations."""
SIZES = tuple(float(2**power) for power in range(9))
"""Those of batches: up to 1, 2, 4 … 256."""

Labels = tuple[str, ...]


class MetricKind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Histogram:
    """Counts by bucket. Whoever adds to one sees to it that nobody else does at the same time."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """How many were up to each bound and above the one before; the last: above all of them."""
        self.total = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        return sum(self.counts)

    def copy(self) -> Histogram:
        made = Histogram(self.bounds)
        made.counts, made.total = list(self.counts), self.total
        return made


@dataclass(frozen=True, slots=True)
class Metric:
    """One thing that is measured; a value for each combination of labels, or one without any."""

    name: str
    kind: MetricKind
    help: str
    values: Mapping[Labels, float | Histogram]
    labels: tuple[str, ...] = ()

    @property
    def value(self) -> float:
        """All of it together; of a histogram, how many there were."""
        return sum(v.count if isinstance(v, Histogram) else v for v in self.values.values())
