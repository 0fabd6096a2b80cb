"""Parts that all pages share: links between them, the live part, actions of buttons, tables."""

from __future__ import annotations

import pytest

import roost
from roost.ui.shell import navigation
from roost.ui.shell.navigation import Route
from tests.ui.conftest import USER, Screen


@pytest.fixture
def screen(service: roost.AgentService) -> Screen:
    return Screen().look()


def test_a_url_of_a_page_has_its_query() -> None:
    assert navigation.url(Route.AGENTS, agent="a b&c") == "/agents?agent=a+b%26c"
    assert navigation.url(Route.TALKS) == "/"


def test_every_page_links_to_all_others(screen: Screen) -> None:
    links = [link.proto.page for link in screen.go(Route.AGENTS).app.sidebar.get("page_link")]
    assert links[:2] == ["", "agents"]
    for route in (Route.TALKS, Route.MAIL, Route.APPROVALS):
        drawn = [link.proto.page for link in screen.go(route).app.sidebar.get("page_link")]
        assert drawn[: len(links)] == links


def test_a_table_shows_its_rows_and_opens_one(service: roost.AgentService, screen: Screen) -> None:
    service.agents.create(USER, "shell.one", profile="brain")
    screen.go(Route.AGENTS)
    assert [row[:2] for row in screen.table("agents") if row[0] == "shell.one"] == [["shell.one", "idle"]]
    screen.report("table", "open", "/agents?agent=shell.one")
    assert screen.app.query_params["agent"] == "shell.one"


def test_a_link_to_another_site_is_not_followed(service: roost.AgentService, screen: Screen) -> None:
    service.agents.create(USER, "shell.two", profile="brain")
    screen.go(Route.AGENTS).report("table", "open", "//other.example/agents?agent=d")
    assert "agent" not in screen.app.query_params


def test_a_redraw_says_for_which_url_it_was_made_and_leaves_the_url_alone(screen: Screen) -> None:
    screen.go(Route.MONITOR, range="6h", tab="events")
    screen.app.query_params.clear()
    screen.app.query_params["range"] = "6h"
    screen.report("refresh", "refresh", "news")  # asked for before the browser knew of the tab
    assert screen.given("refresh")["place"] == {"path": "monitor", "query": [["range", "6h"]]}
    assert screen.app.query_params == {"range": "6h"}
    screen.app.query_params["fact"] = ["RunEnded", "RunFailed"]
    drawn = screen.look().given("refresh")["place"]
    assert drawn["query"] == [["range", "6h"], ["fact", "RunEnded"], ["fact", "RunFailed"]]
