"""Element of plots over time for Streamlit's pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from roost.ui.elements import element

Kind = Literal["line", "area", "bar"]
"""`area` and `bar` are stacked."""
Unit = Literal["count", "seconds", "dollars"]
MOST_SERIES = 8
"""Series in one plot: there are as many colours and patterns."""


@dataclass(frozen=True, slots=True)
class Plotted:
    """Series of a plot: a value for each bucket of time. None is a gap."""

    label: str
    values: tuple[float | None, ...]
    total: str = ""
    """Shown beside the label."""


_mount = element("roost_chart", __file__, "chart")


def draw(
    key: str,
    name: str,
    series: Sequence[Plotted],
    *,
    start: datetime,
    step: float,
    empty: str,
    kind: Kind = "line",
    unit: Unit = "count",
) -> None:
    """Draw series over time, in buckets of `step` seconds; `empty` is shown without values.

    Times are those of the browser's time zone.
    """
    shown = [one for one in series if any(value is not None for value in one.values)][:MOST_SERIES]
    data = {
        "name": name,
        "kind": kind,
        "unit": unit,
        "start": start.timestamp(),
        "step": step,
        "empty": empty,
        "series": [{"label": one.label, "total": one.total, "values": [*one.values]} for one in shown],
    }
    _mount(key=key, data=data)
