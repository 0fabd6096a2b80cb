"""A newcomer without a key: the Guide, its buttons, a first agent, and a model on this machine."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from roost.api.auth import identity
from roost.brains.defaults import KEYS
from tests.browser.conftest import free_port, up
from tests.browser.steps import expect_messages, expect_rest, messages, say, shot

pytestmark = pytest.mark.browser

MODEL = "tiny:1b"


class Models(BaseHTTPRequestHandler):
    """A model server that lists two models, one with a hostile name."""

    def do_GET(self) -> None:
        body = json.dumps({"data": [{"id": MODEL}, {"id": "<img src=x onerror=alert(1)>"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def model_port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Models)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield int(server.server_address[1])
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def page(browser: Browser, tmp_path: Path, model_port: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    """The page of the local user, on a new Roost without settings."""
    monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{model_port}")
    for name in (name for names in KEYS.values() for name in names):
        monkeypatch.delenv(name, raising=False)
    with up(tmp_path, free_port()) as (url, _):
        me = identity(tmp_path)
        context = browser.new_context(viewport={"width": 1280, "height": 900}, timezone_id="Asia/Tokyo")
        context.set_default_timeout(30_000)
        context.add_cookies([{"name": me.cookie_name, "value": me.cookie(me.local_user), "url": url}])
        opened = context.new_page()
        opened.goto(url)
        yield opened
        context.close()


def test_a_newcomer_follows_the_guide_and_connects_a_model(page: Page, tmp_path: Path) -> None:
    faults: list[str] = []
    page.on("console", lambda line: faults.append(line.text) if line.type == "error" else None)
    page.get_by_role("button", name="Guide").click()
    say(page, "How do I create an agent?")
    expect(messages(page).last).to_contain_text("press Create a first agent")
    for count in ("now", "already"):
        page.get_by_role("button", name="Create a first agent").click()
        expect(page.get_by_text(f"You {count} have an agent")).to_be_visible()
    page.get_by_role("button", name="Schedule a task").click()
    expect(page.get_by_text("at 9:00 (Asia/Tokyo)")).to_be_visible()
    page.get_by_role("button", name="Start a demo meeting").click()
    page.get_by_role("button", name="Watch the game").click()
    expect(page.get_by_role("dialog")).to_contain_text(re.compile("demo-(crow|finch)"))
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Create a first agent").click()
    shot(page, "guide-built")
    page.get_by_role("button", name="Talk with first-agent").click()
    expect(page.locator(".st-key-card_chosen_agent_first-agent")).to_be_visible()
    say(page, "remember the milk")
    expect_messages(page, "remember the milk", "made a note")
    expect_rest(page)
    expect(page.get_by_role("button", name="Create a first agent")).to_have_count(0)

    page.get_by_role("button", name="New talk").click()
    page.get_by_role("button", name="Connect a model").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="<img src=x onerror=alert(1)>")).to_be_visible()
    dialog.get_by_label("Key", exact=True).fill("two words")
    dialog.get_by_role("button", name="Test and save").click()
    expect(dialog.get_by_text("This is not a key")).to_be_visible()
    expect(dialog.get_by_label("Key", exact=True)).to_have_value("")
    shot(page, "connect-model")
    dialog.get_by_role("button", name=re.compile("tiny")).click()
    expect(page.get_by_text("You can now talk with tiny-1b")).to_be_visible()
    expect(page.locator(".st-key-card_chosen_profile_tiny-1b")).to_be_visible()
    expect(dialog).to_have_count(0)
    assert "ollama:tiny:1b" in (tmp_path / "profiles.toml").read_text()
    assert faults == []
