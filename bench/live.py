"""The message list in a real Chromium: how late a token is on the screen, and one's own message after Enter."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import roost
from bench.figures import Figure, bench, percentile
from bench.startup import Server
from roost.api.auth import identity

TOKENS = 300
SENT = 30
SETTINGS = """default_profile = "time"
[profiles.time]
brain = "bench.live:tells_the_time"
[profiles.echo]
brain = "echo"
"""
_CHROMIUM = Path(__file__).parent.parent / ".cache" / "chromium-path"

# A token is on the screen with the next frame after its insertion.
_WATCH = r"""() => {
  window.lags = {};
  const look = () => {
    const now = performance.timeOrigin + performance.now();
    const last = [...document.querySelectorAll(".roost-agent .roost-text")].at(-1);
    for (const [, token] of (last?.textContent ?? "").slice(-400).matchAll(/@(\d+\.\d{4}) /g)) {
      window.lags[token] ??= now - Number(token) * 1000;
    }
  };
  new MutationObserver(() => requestAnimationFrame(look)).observe(
    document.body, {childList: true, subtree: true, characterData: true});
}"""
_SEND = r"""(text) => new Promise((done) => {
  const input = document.querySelector('.roost-input');
  const isShown = () => [...document.querySelectorAll(".roost-user .roost-text")].some((m) => m.textContent === text);
  Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(input, text);
  input.dispatchEvent(new Event("input", {bubbles: true}));
  setTimeout(() => {
    const start = performance.now();
    new MutationObserver((_, observer) => {
      if (!isShown()) return;
      observer.disconnect();
      requestAnimationFrame(() => done(performance.now() - start));
    }).observe(document.body, {childList: true, subtree: true, characterData: true});
    input.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", code: "Enter", keyCode: 13, bubbles: true}));
  }, 100);
})"""


async def tells_the_time(turn: roost.Turn) -> AsyncIterator[str]:
    """Yield the time, about as often as a model yields tokens."""
    for _ in range(TOKENS):
        yield f"@{time.time():.4f} "
        await asyncio.sleep(0.023)


@bench("live-tokens")
def live_tokens(folder: Path) -> Iterator[Figure]:
    """From the brain to the screen, and from Enter to one's own message."""
    from playwright.sync_api import expect, sync_playwright

    (folder / "live").mkdir()
    (folder / "roost.toml").write_text(SETTINGS)
    chromium = os.environ.get("ROOST_CHROMIUM") or _CHROMIUM.read_text().strip()
    environment = {"ROOST_CONFIG": str(folder / "roost.toml"), "PYTHONPATH": os.pathsep.join(sys.path)}
    with Server(folder / "live", **environment) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.goto(server.url)
        page.locator(".roost-input").fill("go")
        page.evaluate(_WATCH)
        page.keyboard.press("Enter")
        stop = page.get_by_role("button", name="Stop")
        expect(stop).to_have_count(1, timeout=15_000)
        expect(stop).to_have_count(0, timeout=60_000)
        lags: list[float] = list(page.evaluate("() => Object.values(window.lags)"))[5:]
        assert len(lags) > TOKENS * 0.9, f"only {len(lags)} tokens were seen"
        page.goto(server.url)
        page.get_by_role("button", name="echo", exact=True).click()
        expect(page.locator('[class*="st-key-card_chosen_profile_echo"]')).to_have_count(1)
        shown: list[float] = []
        for number in range(SENT):
            page.locator(".roost-input").focus()
            shown.append(page.evaluate(_SEND, f"message {number}"))
            expect(page.locator(".roost-message")).to_have_count(2 * number + 2)
            expect(stop).to_have_count(0)
        browser.close()
    yield Figure("token_lag_p50", percentile(lags, 50), "ms", len(lags), 40)
    yield Figure("token_lag_p99", percentile(lags, 99), "ms", len(lags), 150)
    yield Figure("own_message_p50", percentile(shown[1:], 50), "ms", len(shown) - 1, 60)


_OPEN = """([title, count]) => new Promise((done) => {
  const start = performance.now();
  new MutationObserver((_, observer) => {
    if (document.querySelectorAll(".roost-message").length < count) return;
    observer.disconnect();
    requestAnimationFrame(() => done(performance.now() - start));
  }).observe(document.body, {childList: true, subtree: true});
  [...document.querySelectorAll(".st-key-talks button")].find((one) => one.textContent === title).click();
})"""
LONG, SHOWN_FIRST = 500, 50


@bench("page-open")
def page_open(folder: Path) -> Iterator[Figure]:
    """A page in a new browser profile, and a talk of 500 messages on an open page."""
    from playwright.sync_api import expect, sync_playwright

    with roost.open(f"sqlite:///{_data(folder) / 'roost.db'}") as service:
        _hold(service, LONG)
    chromium = os.environ.get("ROOST_CHROMIUM") or _CHROMIUM.read_text().strip()
    with Server(_data(folder)) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        cold: list[float] = []
        for _ in range(5):
            page = browser.new_context().new_page()
            start = time.perf_counter()
            page.goto(server.url)
            page.locator(".roost-input").wait_for()
            cold.append(time.perf_counter() - start)
            page.context.close()
        mine = identity(_data(folder))
        context = browser.new_context()
        context.add_cookies([{"name": mine.cookie_name, "value": mine.cookie("ann"), "url": server.url}])
        page = context.new_page()
        page.goto(server.url)
        opened: list[float] = []
        for _ in range(6):
            expect(page.get_by_role("button", name="Long", exact=True)).to_be_visible()
            opened.append(page.evaluate(_OPEN, ["Long", SHOWN_FIRST]))
            page.get_by_role("button", name="New talk", exact=True).click()
            expect(page.locator(".roost-message")).to_have_count(0)
        browser.close()
    yield Figure("cold_page_p50", percentile(cold, 50), "s", len(cold), 1.5)
    yield Figure("open_500_messages_p50", percentile(opened[1:], 50) / 1000, "s", len(opened) - 1, 0.5)


def _data(folder: Path) -> Path:
    data = folder / "page-open"
    data.mkdir(exist_ok=True)
    return data


def _hold(service: roost.AgentService, count: int) -> None:
    talk = service.create_talk_session("ann", profile="echo", title="Long")
    for number in range(count // 2):
        service.add_message("ann", talk, f"question {number}")
        for _ in service.stream_messages("ann", talk):
            pass
