"""The message input: lines, commands, shortcuts, the choice during an answer, and what is refused."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.browser.conftest import Server, Visit
from tests.browser.steps import choose_policy, expect_messages, expect_rest, messages, say, shot, slow

pytestmark = pytest.mark.browser


PRESS_ENTER_AT_ONCE = """
new MutationObserver((_, observer) => {
  const input = document.querySelector(".roost-input");
  if (!input) return;
  observer.disconnect();
  const enter = new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true });
  input.dispatchEvent(enter);
  window.atOnce = { isReceived: enter.defaultPrevented, canBeTypedInto: !input.readOnly };
}).observe(document, { childList: true, subtree: true });
"""


def test_nothing_can_be_typed_before_enter_would_send_it(server: Server, browser: Browser) -> None:
    with browser.new_context() as context:
        context.add_init_script(PRESS_ENTER_AT_ONCE)
        page = context.new_page()
        page.goto(server.url)
        expect(page.locator(".roost-input")).to_be_editable()
        at_once = page.evaluate("() => window.atOnce")
        assert at_once["canBeTypedInto"] is at_once["isReceived"]
        say(page, "Good morning")
        expect_messages(page, "Good morning", "You said: Good morning")


def test_the_input_gets_the_focus_however_late_it_is_drawn(server: Server, browser: Browser) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        late: list[Route] = []
        page.route("**/BidiComponent*.js", lambda route: late.append(route))
        page.clock.install()
        page.goto(server.url)
        expect(page.locator("#roost-lost")).to_be_attached()  # the script of the page runs
        page.clock.run_for(10_000)
        assert late
        for route in late:
            route.continue_()
        expect(page.locator(".roost-input")).to_be_focused()


def test_lines_drafts_and_the_last_message_again(visit: Visit) -> None:
    page = visit()
    line = page.locator(".roost-input")
    low = line.bounding_box()
    line.press_sequentially("one")
    for text in ("two", "three"):
        line.press("Shift+Enter")
        line.press_sequentially(text)
    high = line.bounding_box()
    assert low is not None
    assert high is not None
    assert high["height"] > low["height"] * 2
    page.reload()
    expect(line).to_have_value("one\ntwo\nthree")
    line.press("Enter")
    expect(line).to_have_value("")
    expect(messages(page).first.locator(".roost-text")).to_have_text("one\ntwo\nthree", use_inner_text=True)
    expect_rest(page)
    line.press("ArrowUp")
    editor = page.get_by_label("Edit message")
    expect(editor).to_be_focused()
    expect(editor).to_have_value("one\ntwo\nthree")
    editor.press("Escape")
    expect(line).to_be_focused()


def test_commands_and_shortcuts(visit: Visit) -> None:
    page = visit()
    line = page.locator(".roost-input")
    commands = page.get_by_role("listbox", name="Commands")
    line.press_sequentially("/rename")
    expect(commands.get_by_role("option")).to_have_count(1)
    shot(page, "commands")
    line.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("send a message first")
    say(page, "/etc/hosts is a file")
    expect_messages(page, "/etc/hosts is a file", "You said: /etc/hosts")
    expect_rest(page)
    line.press("/")
    expect(commands.get_by_role("option")).to_have_count(11)
    line.press("Escape")
    expect(commands).to_have_count(0)
    expect(line).to_have_value("/")
    first = page.url
    line.fill("/fork")
    line.press("Enter")
    line.press_sequentially("/rename")  # also while the fork is being opened
    page.wait_for_url(lambda url: url != first)
    expect(line).to_have_value("/rename")
    line.press("Enter")
    page.get_by_role("dialog").get_by_label("Title").fill("A file")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    line.fill("/search hosts")
    line.press("Enter")
    expect(page.get_by_label("Search your talks")).to_have_value("hosts")
    line.blur()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    shot(page, "shortcuts")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    line.fill("/new")
    line.press("Enter")
    expect(messages(page)).to_have_count(0)


def test_what_a_message_does_during_an_answer_is_chosen_beside_it(visit: Visit, server: Server) -> None:
    page = visit()
    choice = page.get_by_role("radiogroup", name="A message sent during the answer")
    expect(choice).to_have_count(0)
    say(page, "held 2")
    expect(messages(page).last).to_contain_text("word2")
    expect(choice.get_by_role("radio", name="Interrupt")).to_be_checked()
    choice.get_by_role("radio", name="Queue").click()
    shot(page, "choice")
    say(page, "afterwards")
    expect(messages(page)).to_have_count(3)
    server.release()
    expect_messages(page, "held 2", "word2 end.", "afterwards", "You said: afterwards")
    expect_rest(page)
    expect(choice).to_have_count(0)
    say(page, "slow 4000")
    expect(messages(page).last).to_contain_text("word2")
    expect(choice.get_by_role("radio", name="Interrupt")).to_be_checked()
    page.keyboard.press("Escape")
    expect_rest(page)


def test_what_is_refused_is_in_the_input_again_in_a_slow_browser(visit: Visit) -> None:
    page = visit()
    choose_policy(page, "is refused")
    say(page, "slow 4000")
    expect(messages(page).last).to_contain_text("word2")
    with slow(page):
        for text in ("one", "two"):
            say(page, text)
            expect(page.locator(".roost-input")).to_have_value(text)
    page.get_by_role("button", name="Stop").click()
    expect_rest(page)
    page.locator(".roost-input").press("Enter")
    expect_messages(page, "slow 4000", "word2", "two", "You said: two")


def test_messages_sent_at_once_all_arrive_once_and_in_order(visit: Visit) -> None:
    page = visit()
    choose_policy(page, "is answered afterwards")
    texts = [f"number {number}" for number in range(12)]
    for text in texts:
        say(page, text)
    expect(messages(page).last).to_have_text(re.compile(r"You said: [\s\S]*number 11"))  # some may share an answer
    said = page.locator(".roost-user .roost-text").all_inner_texts()
    assert said == texts
