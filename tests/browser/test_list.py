"""The message list: it follows the end or stays where one reads, in every tab, with the stream or without."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, WebSocket, WebSocketRoute, expect

from tests.browser.brains import MARKDOWN
from tests.browser.conftest import SETTINGS, Server, Visit, free_port, up
from tests.browser.steps import SlowPage, expect_messages, expect_rest, expect_steady, messages, say, talk_titles, watch

pytestmark = pytest.mark.browser

TABS = 8
"""More than the six connections that a browser opens to one host."""
PANE = "document.querySelector('[data-testid=stMain]')"
DISTANCE = f"() => {{ const pane = {PANE}; return pane.scrollHeight - pane.clientHeight - pane.scrollTop; }}"
AT_THE_END = f"() => {{ const pane = {PANE}; return pane.scrollHeight - pane.clientHeight - pane.scrollTop < 3; }}"
TOPS = """() => Object.fromEntries([...document.querySelectorAll('.roost-message')].map(
  (message) => [message.dataset.seq, Math.round(message.getBoundingClientRect().top)]))"""

SCROLL_SLOWLY = f"""() => {{
  const pane = {PANE};
  setInterval(() => pane.dispatchEvent(new WheelEvent('wheel', {{ deltaY: -1 }})), 50);
  pane.dispatchEvent(new WheelEvent('wheel', {{ deltaY: -1 }}));
  pane.scrollTop -= 5;
  return pane.scrollTop;
}}"""
"""The first moment of a smooth scroll, which lasts; its result is how far it has come."""


def tops(page: Page) -> dict[str, int]:
    """Return the position of each message on the screen, by its number."""
    found: dict[str, int] = page.evaluate(TOPS)
    return found


def scroll(page: Page, pixels: int) -> None:
    page.get_by_test_id("stMain").hover()
    before = page.evaluate(f"() => {PANE}.scrollTop")
    page.mouse.wheel(0, pixels)
    page.wait_for_function(f"(before) => {PANE}.scrollTop !== before", arg=before)


@contextmanager
def no_console_error(page: Page) -> Iterator[None]:
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield
    assert errors == []


@pytest.fixture
def reading(visit: Visit) -> Page:
    """Someone who reads the beginning of a long answer while the next one is written."""
    page = visit()
    say(page, "long 20000")
    expect(messages(page).last).to_contain_text("the-very-end")
    expect_rest(page)
    page.wait_for_function(AT_THE_END)
    say(page, "slow 120")
    expect(messages(page).last).to_contain_text("word2")
    page.wait_for_function(AT_THE_END)
    scroll(page, -2_000)
    page.wait_for_function(f"() => ({DISTANCE})() > 1_500")  # a tab in the background scrolls no further
    return page


def test_reading_is_not_pulled_down_and_a_button_leads_to_the_latest(reading: Page) -> None:
    before, page = tops(reading), reading
    expect(messages(page).last).to_contain_text("word20")
    expect(messages(page).last).to_contain_text("word120 end.")
    expect_rest(page)
    assert {seq: top for seq, top in tops(page).items() if seq in before} == before
    page.get_by_role("button", name="Jump to latest").click()
    page.wait_for_function(AT_THE_END)
    expect(page.get_by_role("button", name="Jump to latest")).to_have_count(0)


def test_the_end_is_followed_while_nothing_else_is_read(visit: Visit) -> None:
    page = visit()
    say(page, "long 20000")
    expect(messages(page).last).to_contain_text("the-very-end")
    say(page, "slow 60")
    for word in ("word5", "word30", "word60 end."):
        expect(messages(page).last).to_contain_text(word)
        page.wait_for_function(AT_THE_END)


def test_a_scroll_upwards_is_not_ended_by_text_that_grows(visit: Visit) -> None:
    page = visit()
    say(page, "long 20000")
    expect(messages(page).last).to_contain_text("the-very-end")
    say(page, "slow 4000")
    expect(messages(page).last).to_contain_text("word2")
    page.wait_for_function(AT_THE_END)
    top = page.evaluate(SCROLL_SLOWLY)
    shown = messages(page).last.inner_text()
    expect(messages(page).last).not_to_have_text(shown)
    assert page.evaluate(f"() => {PANE}.scrollTop") == top
    page.keyboard.press("End")
    page.wait_for_function(AT_THE_END)
    page.get_by_role("button", name="Stop").click()


def test_a_scroll_upwards_is_not_ended_by_a_late_run_of_the_page(visit: Visit) -> None:
    page = visit()
    say(page, "long 20000")
    expect(messages(page).last).to_contain_text("the-very-end")
    expect_rest(page)
    runs = SlowPage(page)
    page.reload()
    expect(messages(page).last).to_contain_text("the-very-end")
    page.wait_for_function(AT_THE_END)
    runs.hold()
    say(page, "slow 4000")
    expect(messages(page).last).to_contain_text("word2")
    page.wait_for_function(AT_THE_END)
    scroll(page, -2_000)
    page.wait_for_function(f"() => ({DISTANCE})() > 1_500")
    runs.release()
    page.get_by_role("button", name="Stop").click()  # it is drawn by that run
    expect(messages(page).last).to_contain_text("Interrupted")
    assert page.evaluate(DISTANCE) > 1_500


@pytest.mark.parametrize("way", ["End", "scrolling"])
def test_who_returns_to_the_end_follows_again(reading: Page, way: str) -> None:
    page = reading
    assert page.evaluate(DISTANCE) > 1_000
    if way == "End":
        page.keyboard.press("End")
    else:
        scroll(page, 100_000)
    page.wait_for_function(AT_THE_END)
    expect(page.get_by_role("button", name="Jump to latest")).to_have_count(0)
    expect(messages(page).last).to_contain_text("word120 end.")
    page.wait_for_function(AT_THE_END)


def test_one_sees_ones_own_message_also_when_scrolled_up(reading: Page) -> None:
    page = reading
    say(page, "here I am")
    expect(messages(page).filter(has_text="here I am").first).to_be_in_viewport(ratio=1)
    expect_messages(page, "long", "the-very-end", "slow 120", "word2", "here I am", "You said: here I am")
    page.wait_for_function(AT_THE_END)


def test_what_is_said_in_another_tab_does_not_move_what_is_read(reading: Page) -> None:
    page = reading
    other = page.context.new_page()
    other.goto(page.url)
    expect(messages(other)).to_have_count(4)
    before = tops(page)
    say(other, "from elsewhere")
    expect(messages(page).last).to_contain_text("You said: from elsewhere")
    expect_rest(page)
    assert {seq: top for seq, top in tops(page).items() if seq in before} == before


def test_older_messages_appear_above_without_moving_the_page(visit: Visit, server: Server) -> None:
    page = visit(f"/?talk={server.long_talk}", user="old")
    expect(messages(page)).to_have_count(50)  # the newest; other tests may have written to this talk
    page.wait_for_function(AT_THE_END)
    older = page.get_by_role("button", name="Show older messages")
    count = messages(page).count()
    older.scroll_into_view_if_needed()
    # Measured and clicked at once: what is being drawn until then may move it.
    before: dict[str, int] = older.evaluate(f"(button) => {{ const tops = ({TOPS})(); button.click(); return tops; }}")
    expect(messages(page)).to_have_count(count + 50)
    after = tops(page)
    assert max(abs(after[seq] - top) for seq, top in before.items()) <= 1


def test_many_tabs_of_one_browser_are_all_live(visit: Visit) -> None:
    first = visit()
    say(first, "hello")
    expect_messages(first, "hello", "You said: hello")
    tabs = [first, *(first.context.new_page() for _ in range(TABS - 1))]
    for tab in tabs[1:]:
        tab.goto(first.url)
        expect_messages(tab, "hello", "You said: hello")
    say(first, "slow 4000")
    for tab in tabs:
        expect(messages(tab).last).to_contain_text("word3")
        expect(tab.get_by_text("Writing…")).to_be_visible()
        expect(tab.locator(".roost-list")).to_have_attribute("data-stream", "live")
    first.get_by_role("button", name="Stop").click()
    for tab in tabs:
        expect(messages(tab).last).to_contain_text("Interrupted")
    texts = [messages(tab).all_inner_texts() for tab in tabs]
    assert len(texts[0]) == 4
    assert texts == [texts[0]] * TABS


def test_the_page_does_not_poll_while_the_stream_lives(visit: Visit) -> None:
    page = visit()
    say(page, "hello")
    expect_messages(page, "hello", "You said: hello")
    expect_rest(page)
    asked: list[bytes | str] = []

    def listen(socket: WebSocket) -> None:
        if "_stcore" in socket.url:
            socket.on("framesent", lambda frame: asked.append(frame))

    page.on("websocket", listen)
    page.reload()
    expect_messages(page, "hello", "You said: hello")
    say(page, "slow 60")
    expect(messages(page).last).to_contain_text("word3")
    before = len(asked)
    expect(messages(page).last).to_contain_text("word50")
    assert len(asked) - before <= 3, "the page has run as if it polled"


def refuse(route: WebSocketRoute) -> None:
    route.close()


def test_without_the_stream_the_page_polls_and_shows_the_same(visit: Visit) -> None:
    page = visit()
    page.route_web_socket("**/api/v1/live", refuse)
    page.reload()
    expect(page.locator(".roost-input")).to_be_editable()
    watch(page)
    say(page, "slow 30")
    expect_messages(page, "slow 30", "word3")
    expect_messages(page, "slow 30", "word30 end.")
    expect_rest(page)
    say(page, "fail")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    expect_steady(page, 4)
    page.unroute_all()


def test_older_messages_come_without_the_stream_too(visit: Visit, server: Server) -> None:
    page = visit(user="old")
    page.route_web_socket("**/api/v1/live", refuse)
    page.goto(f"{server.url}/?talk={server.long_talk}")
    expect(messages(page)).to_have_count(50)
    page.get_by_role("button", name="Show older messages").click()
    expect(messages(page)).to_have_count(100)


def test_a_page_is_right_again_by_itself_after_each_restart(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "roost.toml").write_text(SETTINGS + "[limits]\ndrain = 0.1\n")
    port, page = free_port(), browser.new_context().new_page()
    away = page.get_by_role("status").filter(has_text="Reconnecting…")
    held: list[str] = []
    for number in range(2):
        with up(tmp_path, port) as (url, _):
            if not number:
                page.goto(url)
                expect(page.locator(".roost-input")).to_be_editable()
                watch(page)
            expect(away).to_have_count(0)
            expect(page.locator(".roost-input")).to_be_focused()
            say(page, f"number {number}")
            held += [f"number {number}", f"You said: number {number}"]
            expect_messages(page, *held)
            if number:
                expect(talk_titles(page)).to_have_text(["number 0"])
                break
        expect_messages(page, *held)
        expect(away).to_be_visible()
        expect(page.get_by_text("is closed")).to_have_count(0)
    expect_steady(page, len(held))
    page.context.close()


def test_code_is_copied_by_its_button_and_nothing_is_an_error_in_the_console(visit: Visit) -> None:
    page = visit(permissions=["clipboard-read", "clipboard-write"])
    with no_console_error(page):
        say(page, "markdown")
        expect(messages(page)).to_have_count(2)
        page.get_by_role("button", name="Copy code").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        copied = page.evaluate("() => navigator.clipboard.readText()")
        assert copied == MARKDOWN.split("```python\n")[1].split("```")[0]
        expect(page.get_by_role("button", name="Copy code")).to_be_visible()
