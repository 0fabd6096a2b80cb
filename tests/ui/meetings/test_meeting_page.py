"""Page of one meeting: what it shows, and what one can do there."""

from __future__ import annotations

from html import escape
from typing import Any

import pytest

import roost
from roost.core.meetings.games import registry
from roost.ui.meetings import transcript
from roost.ui.shell.navigation import Route
from tests.ui.conftest import USER, Screen
from tests.ui.meetings.conftest import NASTY, CallMeeting, asked, wait

ME = f"user:{USER}"


def show(screen: Screen, meeting_id: str, **query: str) -> Screen:
    return screen.go(Route.MEETINGS, meeting=meeting_id, **query)


def items(screen: Screen) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = screen.given("transcript")["items"]
    return found


def state(screen: Screen) -> str:
    [found] = screen._html("roost-meeting-state")
    return found


def html(screen: Screen) -> str:
    return " ".join(one.proto.body for one in screen.app.get("html"))


def button(screen: Screen, label: str) -> Any:
    [found] = [one for one in screen.app.button if one.label == label]
    return found


def press(screen: Screen, label: str) -> Screen:
    button(screen, label).click().run()
    assert not screen.app.exception
    return screen


def field(screen: Screen, kind: str, name: str) -> Any:
    [found] = [one for one in getattr(screen.app, kind) if str(one.key).startswith(f"{name}_")]
    return found


def say(screen: Screen, text: str) -> Screen:
    field(screen, "text_area", "text").input(text)
    return press(screen, "Send")


def test_what_is_typed_is_said_once_with_its_mentions(
    service: roost.AgentService, screen: Screen, call: CallMeeting, crew: list[str]
) -> None:
    meeting = call(NASTY)
    show(screen, meeting)
    assert "Anyone may speak." in state(screen)
    field(screen, "multiselect", "to").set_value([crew[0]])
    say(screen, NASTY)
    [item] = items(screen)
    assert (item["name"], item["text"], item["to"], item["own"]) == ("You", NASTY, "to ada", True)
    assert field(screen, "text_area", "text").value == ""
    [word] = service.meetings.view(USER, meeting).words
    assert (word.text, word.to) == (NASTY, (crew[0],))
    assert "<script>alert" not in html(screen)


def test_a_double_click_says_it_once(service: roost.AgentService, screen: Screen, call: CallMeeting) -> None:
    meeting = call("Once")
    show(screen, meeting)
    field(screen, "text_area", "text").input("Only this")
    screen.double_click(button(screen, "Send").key)
    assert [word.text for word in service.meetings.view(USER, meeting).words] == ["Only this"]


def test_words_out_of_turn_are_refused_in_one_sentence_and_stay_in_the_input(
    service: roost.AgentService, screen: Screen, call: CallMeeting
) -> None:
    meeting = call(floor="round_robin")
    show(screen, meeting)
    assert "You have the floor. Next: ada." in state(screen)
    service.agents.pause(USER, "ada")
    service.meetings.pass_turn(USER, meeting)
    say(screen, "too late")
    assert screen.notices == ["It is the turn of agent:ada: wait for yours."]
    assert field(screen, "text_area", "text").value == "too late"
    assert button(screen, "Send").disabled
    assert items(screen) == []
    service.agents.resume(USER, "ada")


def test_only_what_the_rules_allow_now_is_enabled(
    service: roost.AgentService, screen: Screen, call: CallMeeting, crew: list[str]
) -> None:
    meeting = call(floor="moderator")
    show(screen, meeting)
    service.agents.pause(USER, "ada")
    press(screen, "Give the floor")
    assert "ada has the floor." in state(screen)
    assert service.meetings.view(USER, meeting).speakers[0] == crew[0]
    press(screen, "Raise hand")
    assert button(screen, "Raise hand").disabled
    assert "Raised hands: <strong>You</strong>" in html(screen)
    press(screen, "Skip the turn of ada")
    assert service.meetings.view(USER, meeting).speakers == (ME,)
    service.agents.resume(USER, "ada")
    wait(service, meeting, lambda views: views[0].hands == (ME,))
    show(screen, meeting, seen_by=crew[0])
    assert button(screen, "Send").disabled
    assert button(screen, "End meeting").disabled


def test_a_meeting_is_seen_through_the_eyes_of_an_agent_who_then_acts(
    service: roost.AgentService, screen: Screen, call: CallMeeting, crew: list[str]
) -> None:
    meeting = call()
    show(screen, meeting)
    assert [row[0] for row in screen.table("participants")] == ["You (chair)", "ada (required)", "ben (required)"]
    assert {row[2] for row in screen.table("participants")} == {"0 messages, up to date"}
    screen.app.selectbox(key="seen_by").set_value(crew[1]).run()
    assert asked(screen, "seen_by") == crew[1]
    say(screen, "for the agent")
    [word] = service.meetings.view(USER, meeting, seen_by=crew[1]).words
    assert (word.sender, items(screen)[0]["own"]) == (crew[1], True)
    screen.app.selectbox(key="seen_by").set_value(ME).run()
    assert asked(screen, "seen_by") == ""


def test_a_person_plays_and_an_illegal_move_is_refused_in_one_sentence(
    service: roost.AgentService, screen: Screen, call: CallMeeting, crew: list[str]
) -> None:
    meeting = call(game="tic-tac-toe", setting={"players": [ME, crew[0]]})
    show(screen, meeting)
    assert "It is your move with X." in state(screen)
    for _ in range(2):  # the browser may report a click twice
        screen.report("board", "click", {"cell": 5, "key": "a"})
    assert (screen.given("board")["received"], screen.notices) == ("a", [])
    wait(service, meeting, lambda views: len(views[0].state["board"]) - views[0].state["board"].count("") == 2)
    screen.look()
    drawn = screen.given("board")
    taken = drawn["cells"].index("O") + 1
    assert (drawn["cells"][4], drawn["last"], drawn["playable"]) == ("X", taken, True)
    assert [one["text"] for one in items(screen)] == ["took cell 5 with X", f"took cell {taken} with O"]
    screen.report("board", "click", {"cell": taken, "key": "b"})
    [notice] = screen.notices
    assert notice.startswith(f"Cell {taken} is taken by O: take one of")
    assert service.meetings.view(USER, meeting).state["board"].count("X") == 1


class Counting(roost.Game):
    """Players add one or two."""

    def initial(self, setting: Any) -> Any:
        return {"at": 0}

    def apply(self, state: Any, author: str, move: Any) -> Any:
        if move not in (1, 2):
            raise roost.Invalid("add 1 or 2")
        return {"at": state["at"] + move}

    def outcome(self, state: Any) -> roost.Outcome | None:
        return None

    def drawn(self, state: Any) -> str:
        return f"<b>{state['at']}</b>"


def test_another_game_is_shown_as_text_and_takes_a_move(
    service: roost.AgentService, screen: Screen, call: CallMeeting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry._KNOWN, "counting", Counting())
    meeting = call(game="counting")
    show(screen, meeting)
    assert "&lt;b&gt;0&lt;/b&gt;" in html(screen)
    for typed, notice in (("5", ["Add 1 or 2."]), ("2", [])):
        field(screen, "text_input", "move").input(typed)
        press(screen, "Move")
        assert screen.notices == notice
    assert "&lt;b&gt;2&lt;/b&gt;" in html(screen)
    assert field(screen, "text_input", "move").value == ""
    service.meetings.end(USER, meeting)
    wait(service, meeting, lambda views: all(view.is_over for view in views))


def test_refused_entries_are_in_the_transcript_with_their_reason(
    service: roost.AgentService, screen: Screen, crew: list[str]
) -> None:
    service.agents.create(USER, "clumsy", profile="demo-player")
    service.agents.set_state(USER, "clumsy", {"clumsy": True, "seed": 3})
    players = [f"agent:{USER}/clumsy", crew[0]]
    meeting = service.meetings.call(USER, "A game", required=players, game="tic-tac-toe", setting={"players": players})
    views = wait(service, meeting, lambda views: views[0].outcome is not None)
    show(screen, meeting)
    kinds = [one["kind"] for one in items(screen)]
    assert kinds.count("move") == len(service.meetings.view(USER, meeting).played)
    assert "message" in kinds, "it reports the move that was refused"
    assert views[0].outcome
    assert screen.given("board")["playable"] is False


def test_an_ended_meeting_shows_its_minutes_as_text(
    service: roost.AgentService, screen: Screen, call: CallMeeting
) -> None:
    meeting = call("Roof")
    show(screen, meeting)
    field(screen, "text_area", "words").input(NASTY)
    press(screen, "End meeting")
    assert "The meeting has ended." in state(screen)
    assert escape(NASTY) in html(screen)
    assert "<script>alert" not in html(screen)
    [download] = screen.app.get("download_button")
    assert download.proto.label == "Download as Markdown"
    assert not [one for one in screen.app.button if one.label in ("Send", "End meeting")]


def test_an_invitation_can_be_accepted_or_declined(
    service: roost.AgentService, screen: Screen, crew: list[str]
) -> None:
    for answer, phase in (("Accept", "running"), ("Decline", "failed")):
        meeting = service.meetings.call(USER, "Come", required=[ME], by=crew[0])
        show(screen, meeting)
        assert "Waiting for You" in state(screen)
        press(screen, answer)
        for view in service.meetings.watch(USER, meeting, seen_by=crew[0]):
            if view.phase == phase:
                break
        assert view.phase == phase


def test_the_owner_of_an_agent_joins_its_meeting(service: roost.AgentService, screen: Screen, crew: list[str]) -> None:
    meeting = service.meetings.call(USER, "Agents", required=[crew[1]], by=crew[0])
    wait(service, meeting, lambda views: views[0].phase == "running")
    show(screen, meeting)
    press(screen, "Join it yourself")
    assert service.meetings.view(USER, meeting).seen_by == ME
    assert button(screen, "Send")


def test_participants_are_invited_and_removed_and_one_leaves(
    service: roost.AgentService, screen: Screen, call: CallMeeting, crew: list[str]
) -> None:
    meeting = call(required=[crew[0]])
    show(screen, meeting)
    field(screen, "selectbox", "invite").set_value(crew[1])
    press(screen, "Invite")
    wait(service, meeting, lambda views: crew[1] in views[0].present)
    screen.look()
    field(screen, "selectbox", "other").set_value(crew[1])
    press(screen, "Remove")
    assert ["ben", "Removed"] in [row[:2] for row in screen.table("participants")]
    press(screen, "Leave")
    assert service.meetings.view(USER, meeting).status == "left"


def test_a_call_is_cancelled_with_a_reason(service: roost.AgentService, screen: Screen) -> None:
    service.agents.create(USER, "never", profile="demo-player", start=False)
    meeting = service.meetings.call(USER, "Rain", required=[f"agent:{USER}/never"], deadline=3600)
    show(screen, meeting)
    field(screen, "text_area", "words").input(NASTY)
    press(screen, "Cancel")
    assert "The meeting failed" in state(screen)
    assert "<script>alert" not in html(screen)


def test_older_messages_are_shown_on_demand(
    service: roost.AgentService, screen: Screen, call: CallMeeting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript, "MORE", 2)
    meeting = call()
    for number in range(5):
        service.meetings.say(USER, meeting, f"{number}")
    show(screen, meeting)
    assert ([one["text"] for one in items(screen)], screen.given("transcript")["left"]) == (["3", "4"], 3)
    screen.report("transcript", "older", "2")
    assert [one["text"] for one in items(screen)] == ["1", "2", "3", "4"]
    screen.report("transcript", "older", "4")
    assert (len(items(screen)), screen.given("transcript")["more"]) == (5, False)


def test_a_meeting_of_someone_else_is_not_shown(service: roost.AgentService, screen: Screen) -> None:
    secret = service.meetings.call("bob", "A secret", required=[])
    for unknown in (secret, "never"):
        show(screen, unknown)
        assert "You are not in this meeting, or it does not exist." in screen.notices
        assert "secret" not in html(screen)
        press(screen, "Join")
        assert any(notice.startswith("There is no meeting") for notice in screen.notices)


def test_the_minutes_of_a_meeting_that_is_long_over_are_kept(
    service: roost.AgentService, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    meetings = type(service.meetings)

    def gone(*_: object, **__: object) -> None:
        raise roost.Forbidden("only its minutes are left")

    monkeypatch.setattr(meetings, "view", gone)
    monkeypatch.setattr(meetings, "minutes", lambda *_, **__: f"# {NASTY}\n\nCalled by user:ann.\n")
    show(screen, "old")
    assert escape(NASTY) in html(screen)
    assert "<script>alert" not in html(screen)
    assert screen.app.get("download_button")
