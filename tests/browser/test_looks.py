"""A phone, the dark, and every state of the page: to be looked at on the screenshots, and tidy."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Visit
from tests.browser.steps import expect_drawn, expect_messages, expect_rest, messages, open_menu, say, shot, talk_titles

pytestmark = pytest.mark.browser

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": PHONE,
}


def unfold(page: Page) -> None:
    """The sidebar, which a phone has folded."""
    if page.viewport_size == PHONE["viewport"]:
        page.get_by_test_id("stExpandSidebarButton").click()
    expect(page.locator(".st-key-brand")).to_be_in_viewport(ratio=1)


def start_new(page: Page) -> None:
    unfold(page)
    page.get_by_role("button", name="New talk", exact=True).click()
    expect(page.get_by_text("What would you like to talk about?")).to_be_visible()


def empty(page: Page) -> None:
    start_new(page)
    expect(talk_titles(page).first).to_be_attached()


def suggestions(page: Page) -> None:
    page.get_by_role("button", name="Guide", exact=True).click()
    expect(page.get_by_role("button", name="Show me markdown")).to_be_visible()


def markdown(page: Page) -> None:
    start_new(page)
    say(page, "markdown")
    expect(messages(page)).to_have_count(2)
    expect_rest(page)
    messages(page).last.hover()


def failed(page: Page) -> None:
    start_new(page)
    say(page, "fail")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()


def busy(page: Page) -> None:
    start_new(page)
    say(page, "slow 400")
    expect(messages(page).last).to_contain_text("word9")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()


def interrupted(page: Page) -> None:
    say(page, "enough of this, please")
    expect(messages(page)).to_have_count(4)
    expect_rest(page)


def into_view(target: Locator) -> None:
    """Scroll to an element, again if the list above it is redrawn meanwhile."""
    for _ in range(10):
        target.hover()
        with contextlib.suppress(AssertionError):
            return expect(target).to_be_in_viewport(ratio=0.95, timeout=1_000)
    return expect(target).to_be_in_viewport(ratio=0.95)


def settings(page: Page) -> None:
    unfold(page)
    page.get_by_text("Settings of this talk").click()
    into_view(page.get_by_role("button", name="Save"))


def renaming(page: Page) -> None:
    open_menu(page, "slow 400")
    page.get_by_role("menuitem", name="Rename").click()
    page.get_by_label("Title").fill("")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("The title must not be empty.")


def menu(page: Page) -> None:
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_text("Settings of this talk").click()
    open_menu(page, "slow 400")
    expect(page.get_by_role("menuitem", name="Delete")).to_be_in_viewport(ratio=1)


def deleting(page: Page) -> None:
    page.get_by_role("menuitem", name="Delete").click()
    expect(page.get_by_role("dialog").get_by_role("button", name="Delete")).to_be_visible()


def gone(page: Page) -> None:
    page.goto(re.sub(r"\?.*", "", page.url) + "?talk=never")
    expect(page.get_by_role("alert")).to_contain_text("no longer exists")
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)


def long(page: Page) -> None:
    page.goto(re.sub(r"\?.*", "", page.url))
    expect(page.get_by_text("What would you like to talk about?")).to_be_visible()
    unfold(page)
    page.get_by_role("button", name="A long talk", exact=True).click()
    expect(messages(page)).to_have_count(50)
    expect(messages(page).last).to_be_in_viewport(ratio=1)


def talks(page: Page) -> None:
    unfold(page)
    expect(talk_titles(page)).to_have_count(12)


STATES: tuple[Callable[[Page], None], ...] = (
    empty,
    markdown,
    failed,
    busy,
    interrupted,
    settings,
    renaming,
    menu,
    deleting,
    gone,
    suggestions,
    long,
    talks,
)


def sticking_out(page: Page) -> list[str]:
    """Return what is wider than the window, or beyond its sides: the page, and its newest messages."""
    width = page.viewport_size["width"] if page.viewport_size else 0
    wide = page.evaluate("() => document.documentElement.scrollWidth")
    found = [f"the page: {wide} of {width} pixels"] if wide > width else []
    for message in messages(page).all()[-4:]:
        box = message.bounding_box()
        if not box or box["x"] < 0 or box["x"] + box["width"] > width:
            found.append(f"{message.inner_text()!r:.40}: {box}")
    return found


STILL = """() => document.getAnimations().every(
  (one) => one.playState !== "running" || one.effect?.getComputedTiming().iterations === Infinity)"""


def faults(page: Page) -> list[str]:
    """Return what axe-core calls serious or critical: contrast, labels, roles, keyboard; once nothing fades."""
    page.wait_for_function(STILL)
    found = Axe().run(page).response["violations"]
    return [
        f"{fault['id']}: {node['html'][:200]} {node['failureSummary'][:200]}"
        for fault in found
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]


@pytest.mark.parametrize("look", LOOKS)
def test_every_state_is_tidy_in_every_look(visit: Visit, look: str) -> None:
    page = visit(user="old", **LOOKS[look])
    for state in STATES:
        state(page)
        shot(page, f"{look}-{state.__name__}")
        assert sticking_out(page) == [], state.__name__
        assert look == "phone" or faults(page) == [], state.__name__


def test_a_phone_shows_the_talk_without_scrolling_sideways(visit: Visit) -> None:
    page = visit(**PHONE)
    say(page, "markdown")
    expect(messages(page)).to_have_count(2)
    expect_rest(page)
    say(page, "unbroken" * 40)
    expect(messages(page)).to_have_count(4)
    assert sticking_out(page) == []


def test_the_first_page_begins_at_its_top_on_a_small_phone(visit: Visit) -> None:
    page = visit(**PHONE | {"viewport": {"width": 360, "height": 640}})
    heading = page.get_by_text("What would you like to talk about?")
    expect(heading).to_be_visible()
    expect_drawn(page)
    expect(heading).to_be_in_viewport(ratio=1)


def test_talks_can_be_chosen_on_a_phone(visit: Visit) -> None:
    page = visit(**PHONE)
    say(page, "hello")
    expect_messages(page, "hello", "You said: hello")
    expect(talk_titles(page).first).not_to_be_in_viewport()
    page.get_by_test_id("stExpandSidebarButton").click()
    expect(talk_titles(page).first).to_be_in_viewport()
    page.get_by_role("button", name="New talk").click()
    expect(messages(page)).to_have_count(0)
    expect(talk_titles(page).first).not_to_be_in_viewport()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_colours_of_the_system(visit: Visit, scheme: str) -> None:
    page = visit(color_scheme=scheme)
    background = page.evaluate("() => getComputedStyle(document.querySelector('.stApp')).backgroundColor")
    levels = [int(level) for level in background.strip("rgb()").split(",")]
    assert (sum(levels) / 3 > 200) == (scheme == "light")
