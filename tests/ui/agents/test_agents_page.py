"""The list of agents: what it shows, its filters, its pages, and actions on several agents."""

from __future__ import annotations

import json
from typing import Any

import pytest

import roost
from roost.errors import NotFound
from roost.ui.agents import agents_page
from tests.ui.agents.conftest import NASTY, USER, AgentScreen, hold, stored


def row(screen: AgentScreen, name: str) -> dict[str, str]:
    labels = [column.label for column in agents_page.COLUMNS]
    return next(dict(zip(labels, cells, strict=True)) for cells in screen.table("agents") if cells[0] == name)


def links(screen: AgentScreen, name: str) -> list[str]:
    """Return where the cells of an agent lead to."""
    [found] = [one for one in screen.app.get("bidi_component") if one.proto.id.endswith("-agents")]
    cells: list[Any] = next(one["cells"] for one in json.loads(found.proto.json)["rows"] if one["id"] == name)
    return [cell["href"] for cell in cells if isinstance(cell, dict) and "href" in cell]


def test_without_agents_the_list_says_how_to_create_one(screen: AgentScreen) -> None:
    screen.show()
    assert screen.names() == []
    assert "No agents yet. Create the first one above." in [one.value for one in screen.app.caption]


def test_a_row_says_what_an_agent_does_and_what_wakes_it(service: roost.AgentService, screen: AgentScreen) -> None:
    service.agents.create(USER, "busy", profile="brain")
    service.agents.create(USER, "sleeper")
    service.agents.sleep(USER, "sleeper", wake_on=roost.any_of(roost.event("alerts.*"), roost.mail("high")))
    hold(service, "busy", f"hold {NASTY}")
    screen.show()
    assert row(screen, "busy")["State"] == "active"
    assert row(screen, "busy")["Inbox"] == "1"
    assert row(screen, "busy")["Working on"] == f"Task: hold {NASTY}"
    assert row(screen, "sleeper")["State"] == "sleeping"
    assert row(screen, "sleeper")["Next wake"] == "event alerts.* or mail of at least high"
    assert row(screen, "sleeper")["Profile"] == "default"


def test_the_last_error_is_a_sentence_that_links_to_its_run(service: roost.AgentService, screen: AgentScreen) -> None:
    service.agents.create(USER, "failing", profile="brain")
    service.tasks.wait(USER, service.tasks.send(USER, "failing", "fail", max_attempts=1), timeout=20)
    screen.show()
    [run] = service.runs.list(USER, agent="failing")
    assert row(screen, "failing")["Last error"] == "The agent could not finish because of an internal error"
    assert links(screen, "failing") == ["/agents?agent=failing", f"/runs?run={run.run_id}"]
    service.tasks.wait(USER, service.tasks.send(USER, "failing", "work"), timeout=20)
    assert row(screen.show(), "failing")["Last error"] == ""


def test_the_filters_are_in_the_url(service: roost.AgentService, screen: AgentScreen) -> None:
    service.agents.create(USER, "day", profile="other", description=NASTY)
    service.agents.create(USER, "night")
    service.agents.create(USER, "noon", profile="brain")
    service.agents.stop(USER, "noon")
    service.agents.pause(USER, "night")
    assert screen.show().names() == ["day", "night", "noon"]
    assert screen.show(state="stopped").names() == ["noon"]
    assert screen.show(state="paused").names() == ["night"]
    assert screen.show(state="failing").names() == []
    assert screen.show(profile="other").names() == ["day"]
    assert screen.show(profile="default").names() == ["night"]
    assert screen.show(text="**bold**").names() == ["day"]
    assert screen.show(text="n", state="paused").names() == ["night"]
    assert screen.show(state="nonsense").names() == ["day", "night", "noon"]


def test_a_filter_that_is_chosen_changes_the_url_and_starts_with_the_first_page(
    service: roost.AgentService, screen: AgentScreen
) -> None:
    service.agents.create_many(USER, ["a", "b"])
    screen.show(after="a")
    assert screen.names() == ["b"]
    screen.fill("search_text", "a").look()
    assert screen.names() == ["a"]
    assert dict(screen.app.query_params) == {"text": "a"}
    screen.fill("search_text", "").look()
    assert dict(screen.app.query_params) == {}


def test_long_lists_come_in_pages(service: roost.AgentService, screen: AgentScreen) -> None:
    names = [f"p{number:03}" for number in range(150)]
    service.agents.create_many(USER, names)
    assert screen.show().names() == names[:100]
    assert not screen.has("first_after")
    screen.click("next_after")
    assert screen.names() == names[100:]
    assert not screen.has("next_after")
    assert screen.click("first_after").names() == names[:100]


def test_chosen_agents_are_paused_and_resumed(service: roost.AgentService, screen: AgentScreen) -> None:
    service.agents.create_many(USER, ["a", "b", "c"])
    screen.show().act_on("agents", "Pause", "a", "c")
    assert [stored(service, name).paused for name in "abc"] == [True, False, True]
    assert screen.toasts == ["Paused 2 agents."]
    screen.act_on("agents", "Resume", "a")
    assert not stored(service, "a").paused


def test_what_was_refused_is_said_beside_what_was_done(service: roost.AgentService, screen: AgentScreen) -> None:
    service.agents.create_many(USER, ["a", "b"])
    screen.show()
    service.agents.delete(USER, "b")
    screen.act_on("agents", "Pause", "a", "b")
    [notice] = screen.notices
    assert notice.startswith("Paused 1 agent. 1 refused: there is no agent 'b'")


def test_agents_are_deleted_only_after_a_question(service: roost.AgentService, screen: AgentScreen) -> None:
    service.agents.create_many(USER, ["a", "b"])
    screen.show().act_on("agents", "Delete", "a")
    assert "**a** will be deleted" in screen.written
    screen.click("delete_not")
    assert not stored(service, "a").paused
    screen.act_on("agents", "Delete", "a").click("delete_really")
    with pytest.raises(NotFound):
        stored(service, "a")
    assert screen.names() == ["b"]
