"""Sums of metrics over nodes."""

from __future__ import annotations

from roost.core.monitoring.metrics import Histogram, Labels, Metric, MetricKind, NodeMetrics, totals

COUNTER, HISTOGRAM = MetricKind.COUNTER, MetricKind.HISTOGRAM


def counter(values: dict[Labels, float], labels: tuple[str, ...] = ("kind",)) -> Metric:
    return Metric("m", COUNTER, "Help.", values, labels)


def histogram(*values: float, bounds: tuple[float, ...] = (1.0, 10.0)) -> Metric:
    made = Histogram(bounds)
    for value in values:
        made.add(value)
    return Metric("m", HISTOGRAM, "Help.", {(): made})


def node(name: str, *metrics: Metric) -> NodeMetrics:
    return NodeMetrics(f"node_{name}", name, {metric.name: metric for metric in metrics})


def test_values_are_added_by_their_labels() -> None:
    found = totals([node("a", counter({("x",): 1, ("y",): 2})), node("b", counter({("y",): 3, ("z",): 4}))])
    assert found["m"].values == {("x",): 1, ("y",): 5, ("z",): 4}
    assert [one.name for one in found.nodes] == ["a", "b"]


def test_histograms_are_added_by_their_buckets() -> None:
    one, other = histogram(0.5, 5.0), histogram(0.5, 50.0, 70.0)
    made = totals([node("a", one), node("b", other)])["m"].values[()]
    assert isinstance(made, Histogram)
    assert (made.counts, made.total) == ([2, 1, 2], 126.0)
    assert one.value == 2, "the parts are unchanged"


def test_metrics_of_another_version_that_cannot_be_added_are_left_out() -> None:
    mine = counter({("x",): 1})
    other = Metric("new", COUNTER, "Help.", {(): 7})
    found = totals([node("a", mine), node("b", counter({("x", "y"): 1}, ("kind", "more")), other)])
    assert (found["m"], found["new"]) == (mine, other)
    assert totals([node("a", mine), node("b", histogram(1.0))])["m"] == mine
    assert totals([node("a", histogram(0.5)), node("b", histogram(0.5, bounds=(2.0,)))])["m"].value == 1


def test_a_node_without_metrics_is_missing() -> None:
    found = totals([node("a", counter({("x",): 1})), NodeMetrics("node_b", "b", None)])
    assert (found["m"].value, found.missing) == (1, ("b",))
    assert totals([]) == {}
