"""A phone, the dark, and no way to get lost by keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.steps import expect_messages, expect_rest, messages, say, shot, talk_titles

pytestmark = pytest.mark.browser

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def test_a_phone_shows_the_talk_without_scrolling_sideways(visit: Visit) -> None:
    page = visit(**PHONE)
    shot(page, "phone-empty")
    say(page, "markdown")
    expect(messages(page)).to_have_count(2)
    expect_rest(page)
    say(page, "unbroken" * 40)
    expect(messages(page)).to_have_count(4)
    assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    boxes = [message.bounding_box() for message in messages(page).all()]
    assert all(box and box["x"] >= 0 and box["x"] + box["width"] <= 390 for box in boxes)
    shot(page, "phone")


def test_talks_can_be_chosen_on_a_phone(visit: Visit) -> None:
    page = visit(**PHONE)
    say(page, "hello")
    expect_messages(page, "hello", "You said: hello")
    expect(talk_titles(page).first).not_to_be_in_viewport()
    page.get_by_test_id("stExpandSidebarButton").click()
    expect(talk_titles(page).first).to_be_in_viewport()
    shot(page, "phone-talks")
    page.get_by_role("button", name="New talk").click()
    expect(messages(page)).to_have_count(0)
    expect(talk_titles(page).first).not_to_be_in_viewport()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_colours_of_the_system(visit: Visit, scheme: str) -> None:
    page = visit(color_scheme=scheme)
    say(page, "markdown")
    expect(messages(page)).to_have_count(2)
    say(page, "fail")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    shot(page, scheme)
    background = page.evaluate("() => getComputedStyle(document.querySelector('.stApp')).backgroundColor")
    levels = [int(level) for level in background.strip("rgb()").split(",")]
    assert (sum(levels) / 3 > 200) == (scheme == "light")
