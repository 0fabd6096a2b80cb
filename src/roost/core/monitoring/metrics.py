"""Metrics of the whole program. None is about a single agent or user, or about content."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 600.0)
"""Upper bounds of the buckets of durations."""
SIZES = tuple(float(2**power) for power in range(9))
"""Upper bounds of the buckets of batch sizes: 1, 2, 4 … 256."""

Labels = tuple[str, ...]


class MetricKind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Histogram:
    """Counts by bucket. Not safe for threads: the caller must lock."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """Counts per bucket; the last is for values above all bounds."""
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
    """Measurement, with a value per combination of labels, or a single one."""

    name: str
    kind: MetricKind
    help: str
    values: Mapping[Labels, float | Histogram]
    labels: tuple[str, ...] = ()

    @property
    def value(self) -> float:
        """Return the total; for a histogram, the number of values."""
        return sum(v.count if isinstance(v, Histogram) else v for v in self.values.values())
