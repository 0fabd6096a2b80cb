"""The monitor: plots and lists of what happens in a roost, and what one can do about it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

import roost
from roost.hosts.pending import drive
from roost.ui import access
from roost.ui.graph import graph
from roost.ui.monitor import dead_letters, events
from roost.ui.shell.navigation import Route
from tests.conftest import eventually
from tests.ui.conftest import USER, Screen

NASTY = "<img src=x onerror=alert(1)> **b** :smile:"


class MonitorScreen(Screen):
    """The monitor in one browser tab."""


@pytest.fixture
def screen(service: roost.AgentService) -> MonitorScreen:
    return MonitorScreen()


def open_monitor(screen: MonitorScreen, **query: str) -> MonitorScreen:
    return screen.go(Route.MONITOR, **query)


def chart(screen: MonitorScreen, key: str) -> dict[str, Any]:
    """Return the data of a plot."""
    [found] = [one for one in screen.app.get("bidi_component") if one.proto.id.endswith(f"-chart_{key}")]
    data: dict[str, Any] = json.loads(found.proto.json)
    return data


def failed_task(service: roost.AgentService, agent: str, prompt: str = "fail") -> roost.DeadLetter:
    """Return the dead letter of a task that has failed."""
    if agent not in [one.agent_id for one in service.agents.list(USER)]:
        service.agents.create(USER, agent, profile="brain", max_attempts=1)
    service.tasks.wait(USER, service.tasks.send(USER, agent, prompt))
    return eventually(lambda: service.dead_letters.list(USER, agent=agent))[0]


def test_what_failed_is_plotted_and_links_to_its_run(service: roost.AgentService, screen: MonitorScreen) -> None:
    letter = failed_task(service, "m.fails")
    drive(service.roost.figures.write(all_of_it=True))
    open_monitor(screen)
    assert sum(sum(one["values"]) for one in chart(screen, "runs")["series"] if one["label"] == "Tasks") >= 1
    assert "Internal error" in [one["label"] for one in chart(screen, "errors")["series"]]
    assert [one["label"] for one in chart(screen, "latency")["series"]] == ["p50", "p95", "p99"]
    [row] = [row for row in screen.table("failed") if row[1] == "m.fails"]
    assert row[2:4] == ["Tasks", "Internal error"]
    data = screen.given("roost_table")
    [cells] = [one["cells"] for one in data["rows"] if one["cells"][1]["text"] == "m.fails"]
    assert cells[0]["href"] == f"/runs?run={letter.run_id}"


def test_the_range_is_in_the_url_and_sets_the_width_of_buckets(screen: MonitorScreen) -> None:
    steps = {}
    for name in ("15m", "1h", "24h", "7d", "30d"):
        open_monitor(screen, range=name)
        steps[name] = chart(screen, "runs")["step"]
    assert steps == {"15m": 10, "1h": 20, "24h": 600, "7d": 3_600, "30d": 14_400}
    open_monitor(screen, range="nonsense")
    assert chart(screen, "runs")["step"] == 10


def test_chosen_dead_letters_are_retried_and_dropped(service: roost.AgentService, screen: MonitorScreen) -> None:
    one, other = failed_task(service, "m.letters", "fail one"), failed_task(service, "m.letters", "fail two")
    open_monitor(screen, tab="dead-letters", agent="m.letters")
    assert [row[1:4] for row in screen.table("letters")] == [["Task", "m.letters", "Internal error"]] * 2
    screen.act_on("letters", "Drop", one.letter_id)
    assert [row.letter_id for row in service.dead_letters.list(USER, agent="m.letters")] == [other.letter_id]
    screen.act_on("letters", "Retry", other.letter_id)
    found = eventually(lambda: service.dead_letters.list(USER, agent="m.letters"))
    assert found[0].letter_id != other.letter_id, "it was tried again, and failed again"


def test_all_dead_letters_that_match_are_dropped(service: roost.AgentService, screen: MonitorScreen) -> None:
    failed_task(service, "m.kept")
    failed_task(service, "m.dropped")
    open_monitor(screen, tab="dead-letters", agent="m.dropped", fault="internal", kind="task").click("drop_all")
    assert not service.dead_letters.list(USER, agent="m.dropped")
    assert service.dead_letters.list(USER, agent="m.kept")
    open_monitor(screen, tab="dead-letters", agent="m.kept", fault="expired")
    assert not screen.table("letters")
    assert not screen.has("drop_all")


def test_a_dead_letter_of_an_agent_that_is_gone_stays_and_says_why(
    service: roost.AgentService, screen: MonitorScreen
) -> None:
    service.events.publish(USER, "m.nobody", {})
    [letter] = [one for one in service.dead_letters.list(USER, kind="event") if one.envelope["name"] == "m.nobody"]
    open_monitor(screen, tab="dead-letters", kind="event")
    screen.act_on("letters", "Retry", letter.letter_id)
    assert any("subscri" in notice for notice in screen.notices)
    assert service.dead_letters.get(USER, letter.letter_id) == letter


def test_events_are_listed_by_name_and_published(service: roost.AgentService, screen: MonitorScreen) -> None:
    service.events.publish(USER, "m.orders.new", {"text": NASTY}, optional=True)
    service.events.publish(USER, "m.other", optional=True)
    open_monitor(screen, tab="events", name="m.orders.*")
    [row] = screen.table("events")
    assert (row[1], row[2], NASTY in row[4]) == ("m.orders.new", "You", True)
    screen.app.text_input(key="event_name").input("m.orders.paid")
    screen.app.text_area(key="event_data").input("{not json")
    screen.click("publish_event")
    assert any("not JSON" in notice for notice in screen.notices)
    screen.app.text_area(key="event_data").input('{"paid": true}')
    screen.click("publish_event")
    assert [row[1] for row in screen.table("events")] == ["m.orders.paid", "m.orders.new"]
    assert service.events.history(USER, name="m.orders.paid")[0].data == {"paid": True}


def test_lists_lead_to_the_next_page_and_back_to_the_first(
    service: roost.AgentService, screen: MonitorScreen, monkeypatch: pytest.MonkeyPatch
) -> None:
    for list_page, tab, key in ((events, "events", "events"), (dead_letters, "dead-letters", "letters")):
        monkeypatch.setattr(list_page, "PAGE", 2)
        for number in range(3):
            service.events.publish(USER, f"m.paged.{tab}", {"n": number})  # nobody subscribes: also a dead letter
        eventually(lambda: len(service.dead_letters.list(USER, kind="event")) >= 3)
        first = open_monitor(screen, tab=tab).row_ids(key)
        assert not set(screen.click("next_before").row_ids(key)) & set(first)
        assert screen.click("first_before").row_ids(key) == first
        assert not screen.has("first_before")


def test_a_double_click_publishes_an_event_once(service: roost.AgentService, screen: MonitorScreen) -> None:
    open_monitor(screen, tab="events")
    screen.app.text_input(key="event_name").input("m.once")
    screen.double_click("publish_event")
    assert len(service.events.history(USER, name="m.once")) == 1
    screen.click("publish_event")
    assert len(service.events.history(USER, name="m.once")) == 2, "a click on the page that was drawn since is another"


def test_who_talks_to_whom_is_a_graph_and_a_table(service: roost.AgentService, screen: MonitorScreen) -> None:
    service.agents.create(USER, "m.graph", profile="brain")
    for _ in range(3):
        service.tasks.wait(USER, service.tasks.send(USER, "m.graph", "hello"))
    drive(service.roost.figures.write(all_of_it=True))
    open_monitor(screen, tab="graph")
    [row] = [row for row in screen.table("edges") if row[1] == "m.graph"]
    assert row == ["You", "m.graph", "3"]
    data = screen.given("roost_graph")
    assert {"from": f"user:{USER}", "to": f"agent:{USER}/m.graph", "weight": 3} in data["edges"]
    [node] = [one for one in data["nodes"] if one["label"] == "m.graph"]
    assert (node["shape"], node["href"]) == ("circle", "/agents?agent=m.graph")


def test_a_click_on_the_graph_is_followed_although_the_page_is_drawn_again(
    service: roost.AgentService, screen: MonitorScreen, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.agents.create(USER, "m.clicked", profile="brain")
    service.tasks.wait(USER, service.tasks.send(USER, "m.clicked", "hello"))
    drive(service.roost.figures.write(all_of_it=True))
    open_monitor(screen, tab="graph")
    draw = graph.draw
    overtaken: list[bool] = []

    def overtaken_draw(*args: Any) -> None:
        context: Any = get_script_run_ctx()
        if not overtaken:
            overtaken.append(True)
            runner = context.session_state._yield_callback.__self__
            runner.request_rerun(RerunData(context.query_string, None, context.page_script_hash))
        draw(*args)

    monkeypatch.setattr(graph, "draw", overtaken_draw)
    screen.report("roost_graph", "open", "/agents?agent=m.clicked")
    assert overtaken
    assert screen.app.query_params["agent"] == "m.clicked"


def test_numbers_of_the_whole_server_are_for_its_operator_only(
    service: roost.AgentService, screen: MonitorScreen, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_monitor(screen, tab="nodes")
    assert list(screen.app.header) == []
    assert 'class="roost-numbers"' not in str([one.proto.body for one in screen.app.get("html")])
    visit = access.visit
    monkeypatch.setattr(access, "visit", lambda: replace(visit(), is_operator=True))
    open_monitor(screen, tab="nodes")
    assert [one.value for one in screen.app.header] == ["Health of this process", "Nodes", "All users together"]


def test_the_newest_facts_are_filtered(service: roost.AgentService, screen: MonitorScreen) -> None:
    failed_task(service, "m.facts")
    open_monitor(screen, tab="facts", about="m.facts")
    rows = screen.table("facts")
    assert {row[2] for row in rows} == {"m.facts"}
    assert {"RunStarted", "RunEnded", "TaskFailed", "LetterDied"} <= {row[1] for row in rows}
    open_monitor(screen, tab="facts", about="m.facts", fact="TaskFailed")
    assert [row[1] for row in screen.table("facts")] == ["TaskFailed"]
    chosen = screen.app.multiselect(key="several_fact")
    chosen.set_value([*chosen.value, "LetterDied"]).run()
    assert {row[1] for row in screen.table("facts")} == {"TaskFailed", "LetterDied"}
    assert screen.app.query_params["about"] == "m.facts"
    open_monitor(screen, tab="facts", about=NASTY)
    assert not screen.table("facts")
