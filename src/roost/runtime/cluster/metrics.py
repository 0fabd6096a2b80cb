"""Metrics of all nodes of a cluster, each asked for its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from roost.core.monitoring.metrics import Histogram, Metric, MetricKind, MetricTotals, NodeMetrics, totals
from roost.runtime.cluster.membership import Membership

PATIENCE = 0.5
"""Seconds that other nodes have to answer."""


class ClusterMetrics:
    """Any thread may call. `own` returns the metrics of this node."""

    def __init__(self, membership: Membership, own: Callable[[], Mapping[str, Metric]]) -> None:
        self._membership = membership
        self._own = own
        membership.mesh.answerers["metrics"] = self._answer

    async def read(self) -> MetricTotals:
        """Return the sums over all nodes, and the metrics of each; None for a node that does not answer in time."""
        here, others = self._membership.joined, self._membership.others
        questions = [(node.node_id, "metrics") for node in others]
        answers = await self._membership.mesh.ask_each(questions, seconds=PATIENCE)
        found = [NodeMetrics(here.node_id, here.name, self._own())]
        found += [
            NodeMetrics(node.node_id, node.name, None if answer is None else _of_json(answer))
            for node, answer in zip(others, answers, strict=True)
        ]
        return totals(found)

    async def _answer(self) -> list[Any]:
        """Answer another node."""
        return [_to_json(metric) for metric in self._own().values()]


def _to_json(metric: Metric) -> list[Any]:
    values = [
        [labels, [value.bounds, value.counts, value.total] if isinstance(value, Histogram) else value]
        for labels, value in metric.values.items()
    ]
    return [metric.name, metric.kind, metric.help, metric.labels, values]


def _of_json(metrics: list[Any]) -> dict[str, Metric]:
    return {
        name: Metric(name, MetricKind(kind), told, {tuple(of): _value(value) for of, value in values}, tuple(labels))
        for name, kind, told, labels, values in metrics
    }


def _value(value: Any) -> float | Histogram:
    if not isinstance(value, list):
        return float(value)
    bounds, counts, total = value
    found = Histogram(tuple(bounds))
    found.counts, found.total = counts, total
    return found
