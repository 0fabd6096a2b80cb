"""Tour: a newcomer builds it with one button, sees its agents at work, and removes it with another."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

import roost
from roost.demos import tour
from roost.demos.tour_brains import BUYER, PLANNER
from tests.browser.conftest import Server, Visit
from tests.browser.steps import shot

pytestmark = pytest.mark.browser


def test_the_tour_is_built_and_removed(server: Server, visit: Visit) -> None:
    page = visit("/agents", user="newcomer")
    expect(page.get_by_role("heading", name="Take the tour")).to_be_visible()
    shot(page, "tour-offer")
    page.get_by_role("button", name="Build the tour").click()
    buyer = page.get_by_role("row").filter(has_text=BUYER).filter(has_text="waiting").first
    expect(buyer).to_be_visible()
    parts = page.get_by_role("region", name="Parts of the tour")
    expect(parts.get_by_role("link", name=PLANNER)).to_have_attribute("href", f"/agents?agent={PLANNER}")
    shot(page, "tour-built")
    with roost.connect(server.url, server.token) as service:
        assert tour.find(service, "newcomer").is_built
        page.get_by_role("button", name="Remove the tour").click()
        expect(page.get_by_text("No agents yet")).to_be_visible()
        assert not tour.find(service, "newcomer").is_built
        tour.build(service, "newcomer")
        expect(buyer).to_be_visible()
        tour.remove(service, "newcomer")
        expect(page.get_by_role("button", name="Build the tour")).to_be_visible()
        narrow = visit("/agents", user="newcomer", viewport={"width": 390, "height": 800}, color_scheme="dark")
        expect(narrow.get_by_role("heading", name="Take the tour")).to_be_visible()
        shot(narrow, "tour-offer-narrow")
        narrow.get_by_role("button", name="Build the tour").click()
        expect(narrow.get_by_role("link", name=PLANNER).last).to_be_visible()
        narrow.get_by_role("button", name="Remove the tour").scroll_into_view_if_needed()
        shot(narrow, "tour-narrow")
        tour.remove(service, "newcomer")
        assert service.mail.inbox("newcomer", include_archived=True) == []
