"""Steps of people on the talk page, and what they see."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from playwright.sync_api import Locator, Page, WebSocketRoute, expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from roost.core.meetings.games.tictactoe import ROWS
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

_WATCH_FADING = """() => {
  window.faded = [];
  const look = () => document.querySelectorAll("[data-stale=true], summary").forEach((shown) => {
    const { opacity } = getComputedStyle(shown);
    if (opacity !== "1") window.faded.push(`${shown.innerText.slice(0, 40)}: ${opacity}`);
  });
  new MutationObserver(look).observe(document.body, {childList: true, subtree: true, attributes: true});
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


def watch_fading(page: Page) -> None:
    """Begin to look for what fades while the page is drawn again."""
    page.evaluate(_WATCH_FADING)


def faded(page: Page) -> list[str]:
    """Return what has faded since `watch_fading`."""
    found: list[str] = page.evaluate("() => window.faded")
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


def choose(page: Page, field: Locator, name: str, *, exact: bool = False) -> None:
    """Choose from a list; open it again, as a person would, if a run of the page has closed it."""
    option = page.get_by_role("option", name=name, exact=exact)
    for _ in range(5):
        field.click()
        with suppress(AssertionError):
            expect(option).to_be_visible(timeout=5_000)
            break
    option.click()


def choose_policy(page: Page, policy: str) -> None:
    """Set what happens in the next talk to a message that is sent while an answer is being written."""
    unfold_settings(page)
    choose(page, page.get_by_label("A message sent during an answer"), policy)
    page.get_by_role("button", name="Save").click()


class SlowPage:
    """A connection of a page of which frames can be held back, or lost. Create it before the page connects."""

    def __init__(self, page: Page, socket: str = "_stcore/stream") -> None:
        self._held: list[bytes | str] | None = None
        self._losses = 0
        self._late: list[bytes | str] | None = None
        self._is_first = True
        page.route_web_socket(f"**/{socket}", self._connect)

    def _connect(self, route: WebSocketRoute) -> None:
        self._browser, self._server = route, route.connect_to_server()
        self._server.on_message(self._pass)
        route.on_message(self._ask)

    def _ask(self, frame: bytes | str) -> None:
        if self._losses:
            self._losses -= 1
        elif self._late is None or self._is_first:
            self._is_first = False
            self._server.send(frame)
        else:
            self._late.append(frame)
            self._let_late_through()

    def _pass(self, frame: bytes | str) -> None:
        if self._held is None:
            self._browser.send(frame)
        else:
            self._held.append(frame)
            self._let_late_through()

    def _let_late_through(self) -> None:
        if self._late and any(_is(frame, "new_session") for frame in self._held or []):
            late, self._late = self._late, None
            self.release()
            for request in late:
                self._server.send(request)

    def hold(self) -> None:
        self._held = []

    def separate(self) -> None:
        """Let the next two requests of the browser be sent before it sees that the first one has begun.

        The second one reaches the server after that.
        """
        self._held, self._late, self._is_first = [], [], True

    def lose(self) -> None:
        """Lose the next request of the browser."""
        self._losses = 1

    @property
    def has_ended(self) -> bool:
        """Return whether a run has ended since `hold`."""
        return any(_is(frame, "script_finished") for frame in self._held or [])

    def release(self) -> None:
        """Let all through that was held back, and what follows."""
        held, self._held = self._held or [], None
        for frame in held:
            self._browser.send(frame)


def _is(frame: bytes | str, kind: str) -> bool:
    return isinstance(frame, bytes) and ForwardMsg.FromString(frame).WhichOneof("type") == kind


@contextmanager
def slow(page: Page) -> Iterator[None]:
    """A browser with a quarter of its speed."""
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    yield
    session.send("Emulation.setCPUThrottlingRate", {"rate": 1})


def logged_errors(page: Page) -> list[str]:
    """Return a list that fills with the errors that the browser logs from now on."""
    found: list[str] = []
    page.on("console", lambda message: found.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: found.append(str(error)))
    return found


def best_cell(cells: list[str]) -> int:
    """Return the cell of a game that wins for X, else one that keeps O from winning, else a free one."""
    for mark in "XO":
        for row in ROWS:
            marks = [cells[cell - 1] for cell in row]
            if marks.count(mark) == 2 and "" in marks:
                return row[marks.index("")]
    return next(cell for cell in (5, 1, 3, 7, 9, 2, 4, 6, 8) if not cells[cell - 1])


def shot(page: Page, name: str) -> None:
    """Take a picture when everything is there."""
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
    SCREENSHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png")
