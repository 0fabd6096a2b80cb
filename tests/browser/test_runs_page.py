"""The pages of runs in a browser: a list, one run with its steps over time, a replay; on a phone and in the dark."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

import roost
from tests.browser.conftest import Server, Visit
from tests.browser.steps import expect_drawn
from tests.browser.steps import shot as picture
from tests.browser.test_looks import PHONE, faults, sticking_out

pytestmark = pytest.mark.browser

NASTY = "**bold** <img src=x onerror='window.hacked = 1'> ![x](http://pictures.example/pixel.png)"


@pytest.fixture(scope="module")
def user(server: Server) -> str:
    """A user with runs that have succeeded, failed and asked."""
    with roost.connect(server.url, server.token) as service:
        name = service.me().user_id
        service.agents.create(name, "runs.worker", profile="steered")
        service.agents.create(name, "runs.shop", profile="steered", max_attempts=1)
        for text in (NASTY, "clock", "fail", "work runs.worker"):
            service.tasks.wait(name, service.tasks.send(name, "runs.shop", text))
    return name


def shot(page: Page, name: str) -> None:
    """Take a picture when everything is there."""
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
    expect_drawn(page)
    picture(page, name)


def errors_of(page: Page) -> list[str]:
    found: list[str] = []
    page.on("console", lambda message: found.append(message.text) if message.type == "error" else None)
    return found


def test_a_run_is_found_opened_step_by_step_and_replayed(visit: Visit, user: str) -> None:
    page = visit("/runs?agent=runs.shop", user=user)
    errors = errors_of(page)
    expect(page.get_by_role("row")).to_have_count(5)
    shot(page, "runs-list")
    assert faults(page) == []
    page.get_by_label("Status").click()
    page.get_by_role("option", name="Failed").click()
    expect(page.get_by_role("row")).to_have_count(2)
    expect(page.get_by_role("row").last).to_contain_text("internal error")
    page.get_by_role("row").last.get_by_role("link").first.click()
    expect(page.get_by_role("alert")).to_contain_text("internal error")
    expect_drawn(page)
    shot(page, "runs-failed")
    assert faults(page) == []
    page.go_back()
    expect(page.get_by_role("row")).to_have_count(2)
    page.get_by_role("link", name="Show all").click()
    page.goto(page.url.partition("?")[0] + "?agent=runs.shop")
    page.get_by_role("row").nth(1).get_by_role("link").first.click()
    steps = page.get_by_role("region", name="Steps")
    expect(steps.get_by_role("listitem").filter(has=page.get_by_role("link"))).not_to_have_count(0)
    expect_drawn(page)
    shot(page, "runs-one")
    open_steps_by_keyboard(page)
    page.get_by_role("button", name="Replay").click()
    expect(page.get_by_text("✓ Identical.")).to_be_visible()
    expect_drawn(page)
    assert faults(page) == []
    page.reload()
    expect(page.get_by_role("heading", name="Step 2: Tool price")).to_be_visible()
    assert errors == []


def test_a_replay_that_differs_shows_both_side_by_side(visit: Visit, user: str) -> None:
    page = visit("/runs?agent=runs.shop&outcome=done", user=user)
    page.get_by_role("row").nth(2).get_by_role("link").first.click()
    page.get_by_role("button", name="Replay").click()
    expect(page.get_by_text("≠ The replay differs.")).to_be_visible()
    both = page.get_by_role("region", name="Output, recorded and replayed")
    expect(both.get_by_role("row", name="The same first line.").get_by_role("deletion")).to_have_count(0)
    expect(both.get_by_role("row", name="different").get_by_role("deletion")).to_have_count(1)
    both.scroll_into_view_if_needed()
    shot(page, "runs-replay")
    assert faults(page) == []


def open_steps_by_keyboard(page: Page) -> None:
    page.get_by_role("link", name="Step 1, Model call").focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("link", name="Step 2, Tool price")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Step 2: Tool price")).to_be_visible()
    expect(page.get_by_role("link", name="Step 2, Tool price")).to_have_attribute("aria-current", "true")
    expect_drawn(page)
    shot(page, "runs-step")
    assert faults(page) == []


@pytest.mark.parametrize(("look", "options"), [("phone", PHONE), ("dark", {"color_scheme": "dark"})])
def test_runs_are_tidy_on_a_phone_and_in_the_dark(visit: Visit, user: str, look: str, options: dict[str, Any]) -> None:
    page = visit("/runs?agent=runs.shop", user=user, **options)
    link = page.get_by_role("row").nth(1).get_by_role("link").first
    expect(link).to_be_visible()
    shot(page, f"runs-list-{look}")
    assert sticking_out(page) == []
    page.goto(page.url.partition("?")[0] + str(link.get_attribute("href")).removeprefix("/runs") + "&step=2")
    expect(page.get_by_role("heading", name="Step 2: Tool price")).to_be_visible()
    expect_drawn(page)
    shot(page, f"runs-one-{look}")
    assert sticking_out(page) == []
    assert look == "phone" or faults(page) == []


def test_what_agents_and_people_wrote_is_text(visit: Visit, user: str) -> None:
    page = visit("/runs?agent=runs.shop&outcome=done", user=user)
    page.get_by_role("row").last.get_by_role("link").first.click()
    expect(page.get_by_text(NASTY, exact=True)).to_be_visible()
    assert page.evaluate("() => window.hacked") is None


def test_a_user_without_runs_reads_what_a_run_is(visit: Visit) -> None:
    page = visit("/runs", user="runless")
    expect(page.get_by_text("No runs yet.")).to_be_visible()
    expect_drawn(page)
    assert faults(page) == []
    shot(page, "runs-empty")
