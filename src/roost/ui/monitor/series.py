"""Series of plots from a report of figures: a value for each bucket."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

from roost.core.monitoring.figures import FigureName, FigurePoint, FigureReport, added, quantile
from roost.ui.chart.chart import MOST_SERIES, Plotted

Labels = Mapping[str, str]
NO_LABELS: Labels = {}
REST = "Other"


def buckets(report: FigureReport) -> int:
    """Return the number of buckets. The last one may be unfinished."""
    return round((report.until - report.since).total_seconds() / report.width)


def _place(report: FigureReport, point: FigurePoint) -> int:
    return round((point.at - report.since).total_seconds() / report.width)


def summed(
    report: FigureReport,
    name: FigureName,
    labels: Labels = NO_LABELS,
    *,
    value: Callable[[FigurePoint], float] = lambda point: point.count,
    shown: Callable[[float], str] = lambda total: number(total),
) -> list[Plotted]:
    """Return a series for each label, the largest first; nothing happened in a bucket without a point."""
    values: dict[str, list[float]] = defaultdict(lambda: [0.0] * buckets(report))
    ordered = sorted(report.of(name), key=lambda one: -sum(map(value, one.points)))
    for rank, one in enumerate(ordered):
        label = labels.get(one.label, one.label) if rank < MOST_SERIES - 1 or len(ordered) == MOST_SERIES else REST
        for point in one.points:
            values[label][_place(report, point)] += value(point)
    return [Plotted(label, tuple(found), shown(sum(found))) for label, found in values.items()]


def quantiles(report: FigureReport, name: FigureName, shares: Mapping[str, float]) -> list[Plotted]:
    """Return the quantiles of all durations together. A bucket without a duration is a gap."""
    bins: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    for one in report.of(name):
        for point in one.points:
            bins[_place(report, point)].append(point.bins)
    sums = {place: added(found) for place, found in bins.items()}
    whole = added([*sums.values()]) if sums else ()
    return [
        Plotted(
            label,
            tuple(quantile(sums.get(place, ()), share) for place in range(buckets(report))),
            "" if (total := quantile(whole, share)) is None else duration(total),
        )
        for label, share in shares.items()
    ]


def gauges(report: FigureReport, name: FigureName) -> dict[str, list[float | None]]:
    """Return samples by label. Without a sample nothing has happened, so the one before still holds."""
    samples: dict[int, dict[str, float]] = defaultdict(dict)
    for one in report.of(name):
        for point in one.points:
            samples[_place(report, point)][one.label] = point.mean
    found: dict[str, list[float | None]] = {one.label: [] for one in report.of(name)}
    last: dict[str, float] | None = None
    for place in range(buckets(report)):
        last = samples.get(place, last)
        for label, values in found.items():
            values.append(None if last is None else last.get(label, 0.0))
    return found


# --- numbers in words ----------------------------------------------------------------------------


def number(value: float) -> str:
    """Return a number for people: `12`, `3.4k`, `1.2M`."""
    for size, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 10 * size or (name != "k" and value >= size):
            return f"{value / size:.1f}{name}"
    return f"{value:,.0f}" if value == int(value) else f"{value:.1f}"


def duration(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def dollars(value: float) -> str:
    return f"${value:,.2f}" if value >= 1 or not value else f"${value:.4f}"
