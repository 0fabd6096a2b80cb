"""The element for timelines: what it is given, and what it opens."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.ui.conftest import Screen


def _script() -> None:
    """Draw a timeline with one link, and one without lanes. A script of its own, so it imports what it needs."""
    from datetime import UTC, datetime, timedelta

    from roost.ui.timeline import timeline

    start = datetime(2026, 3, 1, tzinfo=UTC)
    end = start + timedelta(seconds=2)
    bar = timeline.Bar(start, end, "<b>2 s</b>", "bad", "/runs?run=r&step=1")
    lanes = [timeline.TimelineLane("![x](http://x.example)", (bar,), depth=1)]
    timeline.draw("one", "Steps", lanes, start=start, end=end, empty="No steps", selected=bar.href)
    timeline.draw("none", "Steps", [], start=start, end=end, empty="No steps")


def test_a_timeline_gets_its_bars_as_text_and_milliseconds() -> None:
    given = Screen(AppTest.from_function(_script)).look().given("timeline")
    [lane] = given["lanes"]
    assert (lane["label"], lane["depth"]) == ("![x](http://x.example)", 1)
    assert lane["bars"] == [
        {
            "text": "<b>2 s</b>",
            "start": given["start"],
            "end": given["start"] + 2_000,
            "tone": "bad",
            "href": "/runs?run=r&step=1",
        }
    ]
    assert given["selected"] == "/runs?run=r&step=1"


def test_a_timeline_without_lanes_says_so() -> None:
    assert [one.value for one in Screen(AppTest.from_function(_script)).look().app.caption] == ["No steps"]
