"""Report of figures: the range and the width of its buckets, and series from rows of the store."""

from __future__ import annotations

from itertools import groupby

from roost.core.monitoring.figures import (
    BINS,
    HISTOGRAMS,
    MOST_BUCKETS,
    FigureName,
    FigurePoint,
    FigureReport,
    FigureSeries,
    kept_width,
    multiple,
    width_of,
)
from roost.core.talks.messages import at
from roost.core.values import checks
from roost.errors import Invalid
from roost.ports import Row

_NAMES = {str(name): name for name in FigureName}


def buckets(since: float, until: float, now: float, width: float | None) -> tuple[int, int, int]:
    """Return the start, the end and the width of the buckets for a range; raise Invalid if there are too many."""
    if until <= since:
        raise Invalid("`until` must be after `since`")
    age = now - since
    if width is None:
        step = width_of(until - since, age)
    else:
        step = multiple(checks.some_time(width, "`width`"), kept_width(age))
    start, end = int(since // step) * step, -int(-until // step) * step
    if width is not None and (end - start) // step > MOST_BUCKETS:
        raise Invalid(f"a report has at most {MOST_BUCKETS:,} buckets: choose a larger `width`, or a shorter range")
    return start, end, step


def report(start: int, end: int, step: int, rows: list[Row]) -> FigureReport:
    """Return series of the rows, which are ordered by name, label, bucket and bin."""
    series = tuple(
        FigureSeries(_NAMES[name], label, _points(_NAMES[name], list(found)))
        for (name, label), found in groupby(rows, lambda row: (row[0], row[1]))
    )
    return FigureReport(at(start), at(end), float(step), series)


def _points(name: FigureName, rows: list[Row]) -> tuple[FigurePoint, ...]:
    return tuple(_point(name, start, list(found)) for start, found in groupby(rows, lambda row: int(row[2])))


def _point(name: FigureName, start: int, rows: list[Row]) -> FigurePoint:
    count, total = sum(int(row[4]) for row in rows), sum(float(row[5]) for row in rows)
    if name not in HISTOGRAMS:
        return FigurePoint(at(start), count, total)
    bins = [0] * BINS
    for row in rows:
        bins[int(row[3])] += int(row[4])
    return FigurePoint(at(start), count, total, tuple(bins))
