"""List of meetings, its filters and pages, and the form that calls one."""

from __future__ import annotations

from typing import Any

import pytest

import roost
from roost.ui.meetings import meetings_page
from roost.ui.shell.navigation import Route
from tests.ui.conftest import USER, Screen
from tests.ui.meetings.conftest import NASTY, CallMeeting, asked, wait

ME = f"user:{USER}"


def topics(screen: Screen) -> list[str]:
    return [row[0] for row in screen.table("meetings")]


def link(screen: Screen, label: str) -> dict[str, str]:
    """Return the query of a link."""
    [found] = [one.proto.query_string for one in screen.app.get("page_link") if one.proto.label == label]
    return dict(part.split("=") for part in found.split("&"))


def fill(screen: Screen, kind: str, key: str, value: object) -> None:
    [found] = [one for one in getattr(screen.app, kind) if one.key == key]
    found.set_value(value).run()
    assert not screen.app.exception


def called(screen: Screen) -> str:
    screen.click("call")
    return asked(screen, "meeting")


def test_the_list_has_what_one_wants_to_know_of_each_meeting(
    service: roost.AgentService, screen: Screen, call: CallMeeting, crew: list[str]
) -> None:
    meeting = call(NASTY, game="tic-tac-toe", setting={"players": [ME, crew[0]]})
    service.meetings.say(USER, meeting, "hello")
    screen.go(Route.MEETINGS)
    assert screen.table("meetings")[0][:6] == [NASTY, "Running", "You, ada and ben", "You", "1", "tic-tac-toe"]
    screen.report("table", "open", f"/meetings?meeting={meeting}")
    assert screen.app.query_params["meeting"] == meeting


def test_filters_are_in_the_url_and_the_list_has_pages(
    service: roost.AgentService, screen: Screen, call: CallMeeting, crew: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meetings_page, "SHOWN", 2)
    service.agents.create(USER, "filtered", profile="demo-player")
    who = f"agent:{USER}/filtered"
    made = [call(f"{number}", required=[who]) for number in range(3)]
    service.meetings.end(USER, made[0])
    wait(service, made[0], lambda views: all(view.is_over for view in views))
    screen.go(Route.MEETINGS)
    screen.app.selectbox(key="filter_participant").set_value(who).run()
    assert (topics(screen), asked(screen, "participant")) == (["2", "1"], who)
    older = link(screen, "Older")
    assert older["before"] == made[1]
    screen.go(Route.MEETINGS, participant=who, before=made[1])
    assert topics(screen) == ["0"]
    assert link(screen, "Newest").keys() == {"participant"}
    screen.go(Route.MEETINGS, participant=who, phase="running")
    assert topics(screen) == ["2", "1"]
    screen.go(Route.MEETINGS, participant=who, phase="failed")
    assert "No meetings match." in [caption.value for caption in screen.app.caption]


def test_a_meeting_is_called_with_a_game_against_an_agent(
    service: roost.AgentService, screen: Screen, crew: list[str]
) -> None:
    screen.go(Route.MEETINGS).click("call_meeting")
    fill(screen, "text_input", "call_topic", NASTY)
    fill(screen, "multiselect", "call_required", [crew[0]])
    fill(screen, "multiselect", "call_optional", ["ben"])
    fill(screen, "selectbox", "call_game", "tic-tac-toe")
    view = service.meetings.view(USER, called(screen))
    assert (view.topic, view.game, view.floor) == (NASTY, "tic-tac-toe", "free")
    assert view.state["players"] == [ME, crew[0]]
    assert {one.address: one.required for one in view.participants} == {ME: False, crew[0]: True, crew[1]: False}
    screen.go(Route.MEETINGS, call="another")
    assert screen.app.text_input(key="call_topic").value == ""


def test_a_double_click_calls_one_meeting(service: roost.AgentService, screen: Screen, crew: list[str]) -> None:
    screen.go(Route.MEETINGS, call="new")
    fill(screen, "text_input", "call_topic", "Called once")
    fill(screen, "multiselect", "call_required", crew)
    screen.double_click("call")
    assert [one.summary.topic for one in service.meetings.overview(USER)].count("Called once") == 1
    assert screen.notices == []


def test_a_game_that_is_called_before_its_players_are_shown_is_between_the_user_and_the_first_participant(
    service: roost.AgentService, screen: Screen, crew: list[str]
) -> None:
    screen.go(Route.MEETINGS, call="new")
    fill(screen, "text_input", "call_topic", "At once")
    fill(screen, "multiselect", "call_required", [crew[0]])
    screen.app.selectbox(key="call_game").set_value("tic-tac-toe")  # no run between this and the button
    assert service.meetings.view(USER, called(screen)).state["players"] == [ME, crew[0]]


def test_a_meeting_is_called_with_a_moderator_and_limits(
    service: roost.AgentService, screen: Screen, crew: list[str]
) -> None:
    screen.go(Route.MEETINGS, call="new")
    fill(screen, "text_input", "call_topic", "Limits")
    fill(screen, "multiselect", "call_required", crew)
    fill(screen, "radio", "call_floor", "moderator")
    fill(screen, "selectbox", "call_moderator", crew[1])
    fill(screen, "number_input", "call_words", 1)
    meeting = called(screen)
    views = wait(service, meeting, lambda views: views[0].phase == "running")
    assert (views[0].floor, views[0].moderator) == ("moderator", crew[1])
    service.meetings.say(USER, meeting, "one", by=crew[1])
    wait(service, meeting, lambda views: all(view.is_over for view in views))


@pytest.mark.parametrize(
    ("filled", "sentence"),
    [
        ({}, "The topic is missing: say what the meeting is about."),
        ({("text_input", "call_topic"): "x", ("multiselect", "call_required"): ["nobody"]}, "There is no"),
        ({("text_input", "call_topic"): "x", ("multiselect", "call_required"): ["a b:c"]}, "The address"),
        (
            {("text_input", "call_topic"): "x", ("selectbox", "call_game"): "tic-tac-toe"},
            "tic-tac-toe needs two players",
        ),
    ],
)
def test_a_call_that_cannot_be_is_refused_in_one_sentence_and_stays_typed(
    screen: Screen, filled: dict[tuple[str, str], Any], sentence: str
) -> None:
    screen.go(Route.MEETINGS, call="new")
    for (kind, key), value in filled.items():
        fill(screen, kind, key, value)
    screen.click("call")
    [notice] = screen.notices
    assert notice.startswith(sentence)
    assert "meeting" not in screen.app.query_params
    for (kind, key), value in filled.items():
        [found] = [one for one in getattr(screen.app, kind) if one.key == key]
        assert found.value == value
