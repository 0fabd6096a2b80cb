"""A server that is ended and started again, and one whose workers are down."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.brains import RELEASED
from tests.browser.conftest import SETTINGS, free_port, up
from tests.browser.steps import expect_messages, expect_rest, messages, say

pytestmark = pytest.mark.browser

FRAGILE = "[limits]\nsilent_loop = 0.3\nblocked_loops = 1\n"
"""The second worker that hangs stays down."""


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    context.set_default_timeout(30_000)
    yield context.new_page()
    context.close()


def test_what_the_restart_cut_off_is_kept_as_interrupted_and_answered_anew_in_full(page: Page, tmp_path: Path) -> None:
    (tmp_path / "roost.toml").write_text(SETTINGS + "[limits]\ndrain = 0.1\n")
    port = free_port()
    with up(tmp_path, port) as (url, _):
        page.goto(url)
        say(page, "held 3")
        expect(messages(page).last).to_contain_text("word3")
        agents = page.context.new_page()
        agents.goto(f"{url}/agents")
        expect(agents.get_by_text("No agents yet")).to_be_visible()
    (tmp_path / RELEASED).touch()
    with up(tmp_path, port):
        page.reload()
        expect_messages(page, "held 3", "Interrupted", "word3 end.")
        expect_rest(page)
        expect(messages(page).nth(1)).not_to_contain_text("end.")
        say(page, "thanks")
        expect_messages(page, "held 3", "Interrupted", "word3 end.", "thanks", "You said: thanks")
        made = {"agentId": "made.after", "config": {"profile": "other"}}
        assert page.request.post(f"{url}/api/v1/agents", data=made, headers={"Origin": url}).ok
        expect(agents.get_by_role("link", name="made.after")).to_be_visible()  # without a reload


def test_workers_that_are_down_are_shown_once_until_the_server_is_restarted(page: Page, tmp_path: Path) -> None:
    (tmp_path / "roost.toml").write_text(SETTINGS + FRAGILE)
    port, banner = free_port(), page.get_by_role("alert").filter(has_text="blocked by brains that do not return")
    with up(tmp_path, port) as (url, _):
        page.goto(url)
        for count in (1, 3):
            say(page, "block 10")
            expect(messages(page)).to_have_count(count + 1)
            expect(messages(page).last).to_contain_text("blocked its thread")
        expect(banner).to_have_count(1)
        page.reload()
        expect(banner).to_have_count(1)
        say(page, "hello")
        expect(messages(page).last).to_contain_text("You said: hello")
    with up(tmp_path, port):
        page.reload()
        expect(messages(page)).to_have_count(6)
        expect(banner).to_have_count(0)
