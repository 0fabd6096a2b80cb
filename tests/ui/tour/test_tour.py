"""Panel of the tour on an empty page: it builds, links to what is built, and removes it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import roost
from roost.demos import tour
from roost.demos.tour_brains import BUYER, PLANNER, WATCHER
from roost.ui.shell.navigation import Route
from tests.ui.conftest import USER, Screen


@pytest.fixture
def screen(service: roost.AgentService) -> Iterator[Screen]:
    for agent in service.agents.list(USER):
        service.agents.delete(USER, agent.agent_id)
    yield Screen().look().go(Route.AGENTS)
    tour.remove(service, USER)


def links(screen: Screen) -> set[str]:
    return {row[0] for row in screen.table("tour_stops")}


def test_the_tour_is_built_and_removed_by_a_button(service: roost.AgentService, screen: Screen) -> None:
    screen.click("build_tour")
    assert tour.find(service, USER).agents == (PLANNER, BUYER, WATCHER)
    assert {PLANNER, BUYER, WATCHER} <= links(screen)
    assert not screen.has("build_tour")
    screen.click("remove_tour")
    assert service.agents.list(USER) == []
    assert PLANNER not in links(screen)
    assert screen.has("build_tour")


def test_the_tour_is_offered_on_an_empty_page_only(service: roost.AgentService, screen: Screen) -> None:
    service.agents.create(USER, "mine", profile="other")
    assert not screen.look().has("build_tour")
    service.agents.delete(USER, "mine")
    assert screen.look().has("build_tour")


def test_a_part_of_the_tour_that_was_deleted_is_not_linked(service: roost.AgentService, screen: Screen) -> None:
    screen.click("build_tour")
    service.agents.delete(USER, BUYER)
    shown = links(screen.look())
    assert (BUYER in shown, WATCHER in shown) == (False, True)


def test_a_name_that_is_taken_is_said(service: roost.AgentService, screen: Screen) -> None:
    service.agents.create(USER, WATCHER, profile="other")
    screen.click("build_tour")
    assert screen.notices == [
        "You have an agent 'tour-watcher' that is not part of the tour: delete it first, then try again."
    ]
