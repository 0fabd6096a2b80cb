"""The server is away for a while: the page says so in its own words, can still be read, and comes back by itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import SETTINGS, free_port, up
from tests.browser.steps import expect_messages, messages, say, shot

pytestmark = pytest.mark.browser


def test_a_page_shows_that_its_server_is_away_and_reconnects(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "roost.toml").write_text(SETTINGS)
    port, page = free_port(), browser.new_context().new_page()
    words = page.get_by_role("status").filter(has_text="Reconnecting…")
    line = page.locator(".roost-input")
    with up(tmp_path, port) as (url, _):
        page.goto(url)
        say(page, "hello")
        expect_messages(page, "hello", "You said: hello")
        expect(words).to_have_count(0)
        page.evaluate(_WATCH_DIALOGS)
    expect(words).to_be_visible()
    page.wait_for_function("() => window.dialogs >= 1")  # Streamlit has tried to show its own
    expect(page.get_by_role("dialog")).to_have_count(0)
    for text in ("while away", "and more"):
        say(page, text)
    expect(line).to_have_value("")
    expect(page.get_by_text("2 messages are not sent yet.")).to_be_visible()
    shot(page, "away")
    with up(tmp_path, port):
        expect(words).to_have_count(0)
        expect(messages(page).last).to_have_text(re.compile("You said: .*and more", re.DOTALL))  # perhaps both together
        expect(messages(page).filter(has_text="while away")).not_to_have_count(0)
        expect(page.get_by_text("not sent yet")).to_have_count(0)
        expect(line).to_be_focused()
        page.reload()
        expect(
            messages(page).locator(".roost-text").filter(has_text=re.compile("^(while away|and more)$"))
        ).to_have_count(2)
    page.context.close()


_WATCH_DIALOGS = """() => {
  window.dialogs = 0;
  new MutationObserver((changes) => changes.forEach((change) => change.addedNodes.forEach((node) => {
    if (node.querySelector?.('[data-testid="stErrorCodeBlock"]')) window.dialogs += 1;
  }))).observe(document.body, {childList: true, subtree: true});
}"""
