"""Pages beside the talks: their URLs, links between them, and news that arrive while they are open."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

import roost
from tests.browser.conftest import Server, Visit
from tests.browser.steps import SlowPage, expect_drawn

pytestmark = pytest.mark.browser


def test_a_page_opens_by_its_url_and_by_its_link(visit: Visit) -> None:
    page = visit("/agents")
    expect(page.get_by_role("heading", name="Agents")).to_be_visible()
    page.get_by_role("link", name="Talks").click()
    expect(page.locator(".roost-input")).to_be_editable()
    page.get_by_role("link", name="Agents").click()
    expect(page).to_have_url(re.compile("/agents$"))
    page.reload()
    expect(page.get_by_role("heading", name="Agents")).to_be_visible()


def test_a_page_shows_what_happens_while_it_is_open(server: Server, visit: Visit) -> None:
    page = visit("/agents", user="news")
    expect(page.get_by_text("No agents yet")).to_be_visible()
    expect_drawn(page)
    with roost.connect(server.url, server.token) as service:
        user = service.me().user_id
        service.agents.create(user, "seen.elsewhere", profile="other")
    own = visit("/agents", user=user)
    expect(own.get_by_role("link", name="seen.elsewhere")).to_be_visible()
    with roost.connect(server.url, server.token) as service:
        service.agents.stop(user, "seen.elsewhere")
        expect(own.get_by_role("row", name="seen.elsewhere")).to_contain_text("stopped")
        service.agents.delete(user, "seen.elsewhere")
    expect(own.get_by_role("link", name="seen.elsewhere")).to_have_count(0)
    expect(page.get_by_text("No agents yet")).to_be_visible()


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_link_is_followed_although_a_run_of_the_open_page_overtakes_it(visit: Visit, has_begun: bool) -> None:
    page = visit("/mail", user="overtaken")
    runs = SlowPage(page)
    page.reload()
    expect(page.get_by_role("radio", name="Unread")).to_be_visible()
    expect_drawn(page)
    if has_begun:
        runs.separate()
    page.evaluate(
        """() => {
          document.querySelector('[data-testid="stPageLink-NavLink"][href*="agents"]').click();
          [...document.querySelectorAll('[role="radio"]')].find((one) => one.innerText.trim() === "Unread").click();
        }"""
    )
    expect(page).to_have_url(re.compile("/agents$"))
    expect(page.get_by_role("heading", name="Agents")).to_be_visible()
