"""Meetings in a browser: call one, talk, play a whole game against an agent while others watch."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

import roost
from tests.browser import steps
from tests.browser.conftest import Server, Visit
from tests.browser.steps import SlowPage, best_cell, expect_drawn, faded, shot, watch_fading
from tests.browser.test_looks import PHONE, faults
from tests.conftest import eventually

pytestmark = pytest.mark.browser

SCROLL_SLOWLY = """(log) => {
  const turn = () => log.dispatchEvent(new WheelEvent("wheel", { deltaY: -1 }));
  setInterval(turn, 50);
  turn();
  log.scrollTop -= 5;
  return log.scrollTop;
}"""
"""Begin a smooth scroll, which lasts; its result is how far it has come."""
NASTY = "<img src=x onerror=alert(1)> **bold** :smile:"


@pytest.fixture
def service(server: Server) -> Iterator[roost.RemoteService]:
    with roost.connect(server.url, server.token) as connected:
        yield connected


def state(page: Page) -> str:
    return page.locator(".roost-meeting-state").inner_text()


def board(page: Page) -> list[str]:
    return page.locator(".roost-cell").all_inner_texts()


def choose(page: Page, label: str, *names: str) -> None:
    """Choose from an input with several values."""
    field = page.get_by_role("combobox", name=label)
    for name in names:
        steps.choose(page, field, name, exact=True)
    page.keyboard.press("Escape")


def test_a_person_plays_a_whole_game_and_the_other_side_is_watched(service: roost.RemoteService, visit: Visit) -> None:
    user = service.me().user_id
    service.agents.create(user, "magpie", profile="demo-player")
    page = visit("/meetings", user=user)
    faults_seen: list[str] = []
    page.on("console", lambda line: faults_seen.append(line.text) if line.type == "error" else None)
    page.get_by_role("button", name="Call a meeting").click()
    page.get_by_label("Topic").fill(f"A game {NASTY}")
    choose(page, "Required participants", "magpie")
    steps.choose(page, page.get_by_role("combobox", name="Game"), "tic-tac-toe")
    expect(page.get_by_role("combobox", name="Plays X")).to_have_value("You")
    expect(page.get_by_role("combobox", name="Plays O")).to_have_value("magpie")
    shot(page, "meetings-call")
    page.get_by_role("button", name="Call meeting").click()
    expect(page.get_by_role("heading", name="A game")).to_contain_text("<img src=x onerror=alert(1)> **bold**")
    expect(page.locator(".roost-meeting-state")).to_contain_text("It is your move with X.")
    meeting_id = page.url.partition("meeting=")[2]
    watcher = visit(f"/meetings?meeting={meeting_id}&seen_by=agent:{user}/magpie", user=user)
    expect(watcher.locator(".roost-meeting-state")).to_contain_text("It is your move with X.")
    shot(page, "meetings-game-begins")
    for _ in range(5):
        cell = best_cell(board(page))
        page.get_by_role("button", name=f"Cell {cell}, empty").click()
        expect(page.locator(".roost-cell").nth(cell - 1)).to_have_text("X")
        expect(watcher.locator(".roost-cell").nth(cell - 1)).to_have_text("X")
        expect(page.locator(".roost-meeting-state")).to_contain_text(re.compile("your move|win|draw"))
        if "your move" not in state(page):
            break
    expect(page.locator(".roost-meeting-state")).to_contain_text(re.compile("You win|draw"))
    expect(watcher.locator(".roost-meeting-state")).to_contain_text(re.compile("You win|draw"))
    assert board(watcher) == board(page)
    shot(page, "meetings-game-over")
    shot(watcher, "meetings-watched")
    assert faults_seen == []
    assert faults(page) == []
    service.agents.stop(user, "magpie")


def test_two_users_talk_in_an_open_meeting(service: roost.RemoteService, visit: Visit) -> None:
    user = service.me().user_id
    service.agents.create(user, "owl", profile="demo-player")
    meeting = service.meetings.call(user, "A long evening", required=[f"agent:{user}/owl"], open=True)
    for view in service.meetings.watch(user, meeting):
        if view.phase == "running":
            break
    for number in range(30):
        service.meetings.say(user, meeting, f"Message {number} {NASTY}")
    host = visit(f"/meetings?meeting={meeting}", user=user)
    log, typed = host.get_by_role("log"), host.get_by_role("textbox", name="Message", exact=True)
    expect(host.get_by_text("Message 29")).to_be_in_viewport()
    typed.fill("half a sen")
    watch_fading(host)

    guest = visit(f"/meetings?meeting={meeting}", **PHONE, color_scheme="dark")
    guest.get_by_role("button", name="Join").click()
    expect(guest.locator(".roost-meeting-state")).to_contain_text("Anyone may speak.")
    shot(guest, "meetings-phone-dark")
    guest.get_by_role("textbox", name="Message", exact=True).fill("Good evening\n*to all*")
    guest.get_by_role("button", name="Send").click()
    expect(guest.get_by_role("textbox", name="Message", exact=True)).to_have_value("")
    expect(guest.locator(".roost-item").last).to_contain_text("*to all*")
    assert guest.evaluate("() => document.documentElement.scrollWidth") <= 390

    newest = host.locator(".roost-item").last
    expect(newest).to_contain_text("Good evening")
    expect(newest).to_be_in_viewport()
    expect(typed).to_have_value("half a sen")
    log.hover()
    host.mouse.wheel(0, -5_000)
    expect(host.get_by_text("Message 0")).to_be_in_viewport()
    service.meetings.say(user, meeting, "While you read")
    expect(host.get_by_role("button", name="1 new")).to_be_visible()
    expect(host.get_by_text("Message 0")).to_be_in_viewport()
    shot(host, "meetings-busy")
    host.get_by_role("button", name="1 new").click()
    expect(host.get_by_text("While you read")).to_be_in_viewport()

    typed.press("End")
    typed.type("tence")
    typed.press("Enter")
    expect(host.locator(".roost-item").last).to_contain_text("half a sentence")
    expect(host.get_by_role("textbox", name="Message", exact=True)).to_be_focused()
    expect(guest.locator(".roost-item").last).to_contain_text("half a sentence")
    expect_drawn(host)
    assert faults(host) == []
    assert faded(host) == []
    service.meetings.end(user, meeting, "We met.")
    expect(
        guest.get_by_role("link", name="Download as Markdown").or_(
            guest.get_by_role("button", name="Download as Markdown")
        )
    ).to_be_visible()
    expect(guest.locator(".roost-minutes").first).to_have_text("We met.")
    shot(host, "meetings-ended")


def test_a_scroll_upwards_in_a_transcript_is_not_ended_by_a_new_message(
    service: roost.RemoteService, visit: Visit
) -> None:
    user = service.me().user_id
    meeting = service.meetings.call(user, "A talk that grows")
    eventually(lambda: service.meetings.view(user, meeting).phase == "running")
    for number in range(30):
        service.meetings.say(user, meeting, f"Message {number}")
    page = visit(f"/meetings?meeting={meeting}", user=user)
    expect(page.get_by_text("Message 29")).to_be_in_viewport()
    log = page.get_by_role("log")
    top = log.evaluate(SCROLL_SLOWLY)
    service.meetings.say(user, meeting, "While you scroll")
    expect(page.get_by_text("While you scroll")).to_be_attached()
    expect(page.get_by_role("button", name="1 new")).to_be_visible()
    assert log.evaluate("(log) => log.scrollTop") == top
    service.meetings.end(user, meeting)


def test_the_next_message_can_be_typed_at_once_however_slow_the_page_is(
    service: roost.RemoteService, visit: Visit
) -> None:
    user = service.me().user_id
    meeting = service.meetings.call(user, "A slow evening")
    eventually(lambda: service.meetings.view(user, meeting).phase == "running")
    page = visit("/meetings", user=user)
    runs = SlowPage(page)
    page.clock.install()
    page.goto(page.url + f"?meeting={meeting}")
    typed = page.get_by_role("textbox", name="Message", exact=True)
    typed.fill("Good evening")
    expect_drawn(page)
    runs.hold()
    typed.press("Enter")
    eventually(lambda: service.meetings.view(user, meeting).said)
    page.clock.run_for(10_000)
    runs.release()
    expect(typed).to_have_value("")
    expect(typed).to_be_focused()
    service.meetings.end(user, meeting)


def test_a_key_that_is_held_down_and_a_double_click_press_a_button_once(
    service: roost.RemoteService, visit: Visit
) -> None:
    user = service.me().user_id
    meeting = service.meetings.call(user, "Once")
    eventually(lambda: service.meetings.view(user, meeting).phase == "running")
    page = visit(f"/meetings?meeting={meeting}", user=user)
    page.evaluate("() => { window.clicks = 0; document.addEventListener('click', () => window.clicks++); }")
    typed = page.get_by_role("textbox", name="Message", exact=True)
    typed.fill("One")
    expect_drawn(page)
    typed.focus()
    for _ in range(3):  # the second and the third repeat it
        page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    expect(page.get_by_role("log").get_by_text("One")).to_be_visible()
    assert page.evaluate("() => window.clicks") == 1
    typed.fill("Two")
    page.get_by_role("button", name="Send", exact=True).dblclick()
    expect(page.get_by_role("log").get_by_text("Two")).to_be_visible()
    assert page.evaluate("() => window.clicks") == 2
    assert [word.text for word in service.meetings.view(user, meeting).words] == ["One", "Two"]
    service.meetings.end(user, meeting)


def test_a_list_without_meetings_and_a_call_that_fails_are_shown(service: roost.RemoteService, visit: Visit) -> None:
    page = visit("/meetings", color_scheme="dark")
    expect(page.get_by_text("No meetings yet: call one.")).to_be_visible()
    assert faults(page) == []
    shot(page, "meetings-empty")
    page.get_by_role("button", name="Call a meeting").click()
    page.get_by_role("button", name="Call meeting").click()
    expect(page.get_by_role("alert")).to_have_text("The topic is missing: say what the meeting is about.")
    assert faults(page) == []
    shot(page, "meetings-call-refused")
    user = service.me().user_id
    meeting = service.meetings.call(user, "A short one")
    for view in service.meetings.watch(user, meeting):
        if view.phase == "running":
            break
    service.meetings.end(user, meeting)
    listed = visit("/meetings?phase=ended", user=user)
    expect(listed.get_by_role("row", name="A short one")).to_contain_text("Ended")
    assert faults(listed) == []
    shot(listed, "meetings-list")
