"""What people do and see on the talk page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.servers import ROOT

expect.set_options(timeout=30_000)

SCREENSHOTS = ROOT / "screenshots"

_WATCH = """() => {
  window.seen = {doubled: [], steps: []};
  const look = () => {
    const texts = [...document.querySelectorAll(".roost-message")].map(
      (m) => m.querySelector(".roost-text")?.innerText ?? "");
    window.seen.doubled.push(...texts.filter((text, i) => text && texts.indexOf(text) < i));
    if (window.seen.steps.at(-1) !== texts.length) window.seen.steps.push(texts.length);
  };
  new MutationObserver(look).observe(document.body, {childList: true, subtree: true, characterData: true});
  look();
}"""

_UNFOLDED = """() => {
  const settings = document.querySelector('.st-key-settings details');
  return settings.getAnimations({ subtree: true }).length === 0 && settings.scrollHeight <= settings.offsetHeight;
}"""


def say(page: Page, text: str) -> None:
    page.locator(".roost-input").fill(text)
    page.keyboard.press("Enter")


def messages(page: Page) -> Locator:
    return page.locator(".roost-message")


def expect_messages(page: Page, *texts: str) -> None:
    """These and no others, in this order, each once; a text stands for a message that contains it."""
    expect(messages(page)).to_have_text([re.compile(re.escape(text)) for text in texts])


def expect_rest(page: Page) -> None:
    """Nothing is being written."""
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    expect(page.get_by_text("Writing…")).to_have_count(0)


def expect_drawn(page: Page) -> None:
    """The page has been drawn to its end: nothing of the page before is left on it."""
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")


def watch(page: Page) -> None:
    """From now on look at the messages after each change of the page."""
    page.evaluate(_WATCH)


def watched(page: Page) -> dict[str, Any]:
    """Texts that were there twice at once, and how the number of messages changed."""
    found: dict[str, Any] = page.evaluate("() => window.seen")
    return found


def expect_steady(page: Page, count: int) -> None:
    """Expect this number of messages, of which none was ever shown twice or disappeared."""
    seen = watched(page)
    assert seen["doubled"] == []
    assert seen["steps"] == sorted(seen["steps"])
    assert seen["steps"][-1] == count


def talk_titles(page: Page) -> Locator:
    return page.locator('.st-key-talks [class*="st-key-open_"] button')


def open_menu(page: Page, title: str) -> None:
    """Of the newest talk with this title."""
    page.get_by_role("button", name=f"Menu of {title}").first.click()


def delete(page: Page, title: str) -> None:
    """Delete a talk, as it is listed."""
    open_menu(page, title)
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()


def unfold_settings(page: Page) -> None:
    """Wait until nothing moves: a list of choices would close, and a click would miss its button."""
    page.get_by_text("Settings of").click()
    page.get_by_role("button", name="Save").hover()
    page.wait_for_function(_UNFOLDED)


def choose_policy(page: Page, policy: str) -> None:
    """Set what happens in the next talk to a message that is sent while an answer is being written."""
    unfold_settings(page)
    page.get_by_label("A message sent during an answer").click()
    page.get_by_role("option", name=policy).click()
    page.get_by_role("button", name="Save").click()


@contextmanager
def slow(page: Page) -> Iterator[None]:
    """A browser with a quarter of its speed."""
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    yield
    session.send("Emulation.setCPUThrottlingRate", {"rate": 1})


def shot(page: Page, name: str) -> None:
    SCREENSHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png")
