"""Metrics on the wire: a value or a histogram per combination of labels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from pydantic import BaseModel

from roost.core.monitoring.metrics import Histogram, Metric, MetricKind


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


class MetricList(BaseModel):
    metrics: list[MetricReply]

    @classmethod
    def of(cls, metrics: Iterable[Metric]) -> Self:
        return cls(metrics=[MetricReply.of(metric) for metric in metrics])

    def by_name(self) -> dict[str, Metric]:
        return {reply.name: reply.metric() for reply in self.metrics}
