"""Metrics on the wire: a value or a histogram per combination of labels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from pydantic import BaseModel

from roost.core.monitoring.metrics import Histogram, Metric, MetricKind, MetricTotals, NodeMetrics
from roost.protocol.values import Wire


class HistogramReply(BaseModel):
    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float

    def histogram(self) -> Histogram:
        made = Histogram(self.bounds)
        made.counts, made.total = list(self.counts), self.total
        return made


class ValueReply(BaseModel):
    labels: tuple[str, ...]
    value: float | HistogramReply

    @classmethod
    def of(cls, labels: tuple[str, ...], value: float | Histogram) -> Self:
        if isinstance(value, Histogram):
            kept = HistogramReply(bounds=tuple(value.bounds), counts=tuple(value.counts), total=value.total)
            return cls(labels=labels, value=kept)
        return cls(labels=labels, value=value)


class MetricReply(BaseModel):
    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...]
    values: list[ValueReply]

    @classmethod
    def of(cls, metric: Metric) -> Self:
        values = [ValueReply.of(labels, value) for labels, value in metric.values.items()]
        return cls(name=metric.name, kind=metric.kind, help=metric.help, labels=metric.labels, values=values)

    def metric(self) -> Metric:
        values = {
            one.labels: one.value.histogram() if isinstance(one.value, HistogramReply) else one.value
            for one in self.values
        }
        return Metric(self.name, self.kind, self.help, values, self.labels)


class NodeMetricsReply(Wire):
    """Metrics of a node; null if it did not answer in time."""

    node_id: str
    name: str
    metrics: list[MetricReply] | None

    @classmethod
    def of(cls, node: NodeMetrics) -> Self:
        metrics = None if node.metrics is None else [MetricReply.of(metric) for metric in node.metrics.values()]
        return cls(node_id=node.node_id, name=node.name, metrics=metrics)

    def node(self) -> NodeMetrics:
        return NodeMetrics(self.node_id, self.name, None if self.metrics is None else _by_name(self.metrics))


class MetricList(BaseModel):
    """Metrics; in a cluster the sums over all nodes, the metrics of each, and the names of those that are missing."""

    metrics: list[MetricReply]
    nodes: list[NodeMetricsReply] = []
    missing: tuple[str, ...] = ()

    @classmethod
    def of(cls, found: MetricTotals) -> Self:
        nodes = [NodeMetricsReply.of(node) for node in found.nodes]
        return cls(metrics=[MetricReply.of(metric) for metric in found.values()], nodes=nodes, missing=found.missing)

    def totals(self) -> MetricTotals:
        return MetricTotals(_by_name(self.metrics), [node.node() for node in self.nodes])


def _by_name(replies: Iterable[MetricReply]) -> dict[str, Metric]:
    return {reply.name: reply.metric() for reply in replies}
