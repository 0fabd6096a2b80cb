"""Element of timelines for Streamlit's pages: lanes of bars over an axis of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import streamlit as st

from roost.ui.elements import element
from roost.ui.table.table import follow_opened, keep_opened


@dataclass(frozen=True, slots=True)
class Bar:
    """Period. With `href`, a link to a page of Roost; `title` is its name for screen readers and shown on hover."""

    start: datetime
    end: datetime
    text: str
    tone: str = ""
    """`good`, `busy`, `waiting`, `bad` or `quiet`."""
    href: str = ""
    title: str = ""
    """Default: the text, the times and the duration."""


@dataclass(frozen=True, slots=True)
class TimelineLane:
    label: str
    bars: tuple[Bar, ...]
    depth: int = 0
    """Levels by which the label is indented."""


_mount = element("roost_timeline", __file__, "timeline")


def draw(
    key: str,
    name: str,
    lanes: Sequence[TimelineLane],
    *,
    start: datetime,
    end: datetime,
    empty: str,
    selected: str = "",
) -> None:
    """Draw lanes of bars from `start` to `end`; bars are cut there. `selected`: the `href` of bars to mark.

    `name` is read by screen readers, `empty` shown without lanes. A link that is clicked opens its page. The axis
    counts from the start if the period is short, otherwise it has the times of the browser's time zone.
    """
    if not lanes:
        st.caption(empty)
        return
    data = {
        "name": name,
        "start": _milliseconds(start),
        "end": _milliseconds(end),
        "selected": selected,
        "lanes": [_lane(lane) for lane in lanes],
    }
    _mount(key=key, data=data, on_open_change=partial(keep_opened, key))
    follow_opened()


def _lane(lane: TimelineLane) -> dict[str, Any]:
    return {"label": lane.label, "depth": lane.depth, "bars": [_bar(bar) for bar in lane.bars]}


def _bar(bar: Bar) -> dict[str, Any]:
    more = {"tone": bar.tone, "href": bar.href, "title": bar.title}
    times = {"start": _milliseconds(bar.start), "end": _milliseconds(bar.end)}
    return {"text": bar.text, **times, **{name: value for name, value in more.items() if value}}


def _milliseconds(time: datetime) -> float:
    return time.timestamp() * 1000
