"""Filters in the URL: wrong values are ignored or explained, and never an error of the page."""

from __future__ import annotations

import pytest

import roost
from roost.ui.shell.navigation import Route
from tests.ui.conftest import Screen

WRONG: list[tuple[Route, dict[str, str], str]] = [
    (Route.MONITOR, {"tab": "facts", "fact": ",,TaskFailed,<script>", "about": "';--"}, ""),
    (Route.MONITOR, {"tab": "dead-letters", "kind": "zz", "fault": "💩", "agent": "\0"}, "agent id"),
    (Route.MONITOR, {"tab": "events", "name": "\0", "within": "zz"}, "NUL"),
    (Route.RUNS, {"agent": "\0", "outcome": "zz", "kind": "💩", "before": "x"}, "agent id"),
    (Route.MEETINGS, {"phase": "nope", "participant": ":::"}, "phase"),
]


@pytest.mark.parametrize(("route", "query", "notice"), WRONG)
def test_wrong_filters_are_ignored_or_explained(
    service: roost.AgentService, route: Route, query: dict[str, str], notice: str
) -> None:
    screen = Screen().look().go(route, **query)
    assert not screen.app.exception
    assert [notice in text for text in screen.notices] == ([True] if notice else [])
