"""Series of plots from a report of figures."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from roost.core.monitoring.figures import BINS, FigureName, FigurePoint, FigureReport, FigureSeries
from roost.ui.monitor import ranges, series
from roost.ui.monitor.series import gauges, quantiles, summed

START = datetime(2030, 1, 1, tzinfo=UTC)


def report(name: FigureName, **labels: dict[int, FigurePoint]) -> FigureReport:
    """A report with four buckets."""
    found = tuple(FigureSeries(name, label, tuple(points.values())) for label, points in labels.items())
    return FigureReport(START, START + timedelta(seconds=40), 10.0, found)


def point(place: int, count: int, total: float = 0.0, bins: tuple[int, ...] = ()) -> FigurePoint:
    return FigurePoint(START + timedelta(seconds=10 * place), count, total, bins)


def test_a_bucket_without_values_has_none_of_what_is_counted() -> None:
    found = summed(
        report(FigureName.ERRORS, few={1: point(1, 1)}, many={0: point(0, 2), 3: point(3, 3)}), FigureName.ERRORS
    )
    assert [(one.label, one.values, one.total) for one in found] == [
        ("many", (2, 0, 0, 3), "5"),
        ("few", (0, 1, 0, 0), "1"),
    ]


def test_rare_labels_share_a_series() -> None:
    labels = {f"label{number}": {0: point(0, number + 1)} for number in range(20)}
    found = summed(report(FigureName.ERRORS, **labels), FigureName.ERRORS)
    assert (len(found), found[-1].label) == (8, "Other")
    assert sum(one.values[0] or 0 for one in found) == sum(range(1, 21))


def test_quantiles_are_of_all_kinds_together_and_have_gaps() -> None:
    def bins(place: int) -> tuple[int, ...]:
        return tuple(int(number == place) for number in range(BINS))

    durations = report(FigureName.RUNS, task={1: point(1, 1, bins=bins(3))}, mail={1: point(1, 1, bins=bins(9))})
    [low, high] = quantiles(durations, FigureName.RUNS, {"p50": 0.5, "p99": 0.99})
    assert (low.values[0], low.values[2]) == (None, None)
    assert low.values[1] == 0.01
    assert 0.5 < (high.values[1] or 0) < 1


def test_a_gauge_stays_until_its_next_sample() -> None:
    found = gauges(
        report(FigureName.AGENTS, idle={1: point(1, 2, 6.0), 3: point(3, 1, 1.0)}, active={1: point(1, 1, 2.0)}),
        FigureName.AGENTS,
    )
    assert found == {"idle": [None, 3.0, 3.0, 1.0], "active": [None, 2.0, 2.0, 0.0]}


def test_numbers_are_short() -> None:
    assert [series.number(one) for one in (0, 7, 1_234, 12_345, 1.5, 2_500_000)] == [
        "0",
        "7",
        "1,234",
        "12.3k",
        "1.5",
        "2.5M",
    ]
    assert [series.duration(one) for one in (0.0123, 2, 300, 10_000)] == ["12 ms", "2.0 s", "5 min", "2.8 h"]
    assert [series.dollars(one) for one in (0, 0.00123, 12)] == ["$0.00", "$0.0012", "$12.00"]
    assert [ranges.width(one) for one in (10, 60, 900, 3_600, 86_400)] == ["10 s", "1 min", "15 min", "1 h", "1 day"]
