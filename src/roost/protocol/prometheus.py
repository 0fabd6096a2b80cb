"""Metrics in Prometheus' text format, version 0.0.4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from roost.core.monitoring.metrics import Histogram, Labels, Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def text(metrics: Iterable[Metric]) -> str:
    return "".join(f"{line}\n" for metric in metrics for line in _lines(metric))


def _lines(metric: Metric) -> Iterator[str]:
    yield f"# HELP {metric.name} {metric.help}"
    yield f"# TYPE {metric.name} {metric.kind}"
    for labels, value in sorted(metric.values.items(), key=lambda item: item[0]):
        if isinstance(value, Histogram):
            yield from _buckets(metric, labels, value)
        else:
            yield f"{metric.name}{_labels(metric.labels, labels)} {_number(value)}"


def _buckets(metric: Metric, labels: Labels, histogram: Histogram) -> Iterator[str]:
    bounds = [*(_number(bound) for bound in histogram.bounds), "+Inf"]
    for bound, count in zip(bounds, accumulate(histogram.counts), strict=True):
        yield f"{metric.name}_bucket{_labels((*metric.labels, 'le'), (*labels, bound))} {count}"
    yield f"{metric.name}_sum{_labels(metric.labels, labels)} {_number(histogram.total)}"
    yield f"{metric.name}_count{_labels(metric.labels, labels)} {histogram.count}"


def _labels(names: tuple[str, ...], values: Labels) -> str:
    told = ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return f"{{{told}}}" if told else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
