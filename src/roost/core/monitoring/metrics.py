"""Metrics of the whole program, and of a cluster. None is about a single agent or user, or about content."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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

    def plus(self, other: Histogram) -> Histogram:
        """Return the sum of both, which have the same bounds."""
        made = Histogram(self.bounds)
        made.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        made.total = self.total + other.total
        return made

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

    def plus(self, other: Metric) -> Metric:
        """Return the sum of both. Values of another program version, with other labels or buckets, are left out."""
        if (other.kind, other.labels) != (self.kind, self.labels):
            return self
        values = dict(self.values)
        for labels, value in other.values.items():
            values[labels] = _sum(values[labels], value) if labels in values else value
        return replace(self, values=values)


@dataclass(frozen=True, slots=True)
class NodeMetrics:
    """Metrics of a node of a cluster, by name; None if the node did not answer in time."""

    node_id: str
    name: str
    metrics: Mapping[str, Metric] | None


class MetricTotals(dict[str, Metric]):
    """Metrics by name: of this process, or in a cluster the sums over all nodes that have answered in time."""

    nodes: tuple[NodeMetrics, ...]
    """Parts of the sums, by node; empty without a cluster."""

    def __init__(self, metrics: Mapping[str, Metric], nodes: Sequence[NodeMetrics] = ()) -> None:
        super().__init__(metrics)
        self.nodes = tuple(nodes)

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the names of the nodes that did not answer in time."""
        return tuple(node.name for node in self.nodes if node.metrics is None)


def totals(nodes: Iterable[NodeMetrics]) -> MetricTotals:
    """Return the sums over nodes."""
    told, found = tuple(nodes), dict[str, Metric]()
    for node in told:
        for name, metric in (node.metrics or {}).items():
            found[name] = found[name].plus(metric) if name in found else metric
    return MetricTotals(found, told)


def _sum(one: float | Histogram, other: float | Histogram) -> float | Histogram:
    if isinstance(one, Histogram):
        return one.plus(other) if isinstance(other, Histogram) and list(one.bounds) == list(other.bounds) else one
    return one if isinstance(other, Histogram) else one + other
