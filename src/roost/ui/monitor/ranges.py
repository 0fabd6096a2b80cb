"""Range of time that the monitor shows, which is in the URL."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import streamlit as st

from roost.core.monitoring.figures import DAY, HOUR, FigureReport
from roost.ui.shell import url_choice
from roost.ui.shell.visit import Visit

_KEY = "monitor_report"


@dataclass(frozen=True, slots=True)
class TimeRange:
    label: str
    words: str
    seconds: int
    refresh: float
    """Seconds after which it is drawn again."""

    @property
    def since(self) -> datetime:
        return datetime.now(UTC) - timedelta(seconds=self.seconds)


RANGES = {
    "15m": TimeRange("15 min", "the last 15 minutes", 900, 10.0),
    "1h": TimeRange("1 h", "the last hour", HOUR, 10.0),
    "6h": TimeRange("6 h", "the last 6 hours", 6 * HOUR, 60.0),
    "24h": TimeRange("24 h", "the last 24 hours", DAY, 60.0),
    "7d": TimeRange("7 days", "the last 7 days", 7 * DAY, 300.0),
    "30d": TimeRange("30 days", "the last 30 days", 30 * DAY, 300.0),
}
"""By their names in the URL; the first one is shown if the URL names none."""


def choose() -> TimeRange:
    url_choice.segments("range", "Range of time", {name: one.label for name, one in RANGES.items()})
    return chosen()


def chosen() -> TimeRange:
    return RANGES[url_choice.chosen("range", {name: one.label for name, one in RANGES.items()})]


def report(visit: Visit) -> FigureReport:
    """Return the figures of the range; a page that is drawn again at once shows the same: they are new every 10 s."""
    shown, now = chosen(), datetime.now(UTC)
    key: tuple[Any, ...] = (visit.user, shown.label, int(now.timestamp() // 5))
    known: tuple[Any, FigureReport] | None = st.session_state.get(_KEY)
    if known is None or known[0] != key:
        known = st.session_state[_KEY] = (key, visit.service.monitor.figures(visit.user, since=shown.since))
    return known[1]


def width(seconds: float) -> str:
    """Return the width of a bucket in words: `20 s`, `15 min`."""
    for unit, name in ((DAY, "day"), (HOUR, "h"), (60, "min")):
        if seconds >= unit and not seconds % unit:
            count = int(seconds // unit)
            return f"{count} {name}s" if name == "day" and count > 1 else f"{count} {name}"
    return f"{seconds:.0f} s"
