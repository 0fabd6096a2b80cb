"""A newcomer without a key: the Guide, its buttons, a first agent, and a model on this machine."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
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


PACE = 0.05
SETTINGS = """
tools = ["tests.browser.brains:pay"]

[profiles.cashier]
brain = "tests.browser.brains:steered"
description = "Pays bills."
"""


class Models(BaseHTTPRequestHandler):
    """A model server that lists two models, one with a hostile name. A question about a story has a long answer."""

    def do_GET(self) -> None:
        body = json.dumps({"data": [{"id": MODEL}, {"id": "<img src=x onerror=alert(1)>"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"][-1]["content"]
        words = [f"word{number} " for number in range(1000)] if "story" in str(asked) else [f"In short: {asked}"]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.close_connection = True
        with suppress(OSError):  # the answer was stopped
            for word in words:
                self.wfile.write(_event({"delta": {"role": "assistant", "content": word}}))
                threading.Event().wait(PACE)
            self.wfile.write(_event({"delta": {}, "finish_reason": "stop"}) + b"data: [DONE]\n\n")

    def log_message(self, format: str, *args: object) -> None:
        pass


def _event(choice: dict[str, object]) -> bytes:
    head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    return b"data: " + json.dumps(head | {"choices": [{"index": 0, **choice}]}).encode() + b"\n\n"


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
    """The page of the local user, on a new Roost with one agent in its settings."""
    (tmp_path / "roost.toml").write_text(SETTINGS)
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


def test_a_newcomers_path_by_visible_labels(page: Page, tmp_path: Path) -> None:
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
    page.get_by_role("link", name="Watch the game").click()
    expect(page.locator(".roost-meeting-state")).to_contain_text(re.compile("demo-(crow|finch)"))
    expect(page.get_by_role("button", name="last move")).to_have_count(1)
    page.go_back()
    page.get_by_role("button", name="Create a first agent").click()
    shot(page, "guide-built")
    page.get_by_role("button", name="Talk with first-agent").click()
    expect(page.locator(".st-key-card_agent_first-agent .roost-chosen")).to_be_visible()
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
    expect(page.locator(".st-key-card_profile_tiny-1b .roost-chosen")).to_be_visible()
    expect(dialog).to_have_count(0)
    assert "ollama:tiny:1b" in (tmp_path / "profiles.toml").read_text()

    write_and_come_back(page, tmp_path)
    assert faults == []


def write_and_come_back(page: Page, tmp_path: Path) -> None:
    """The rest of the path, with the connected model: by visible labels only."""
    line = page.get_by_label("Type a message")
    spoken = page.get_by_role("log", name="Messages").get_by_role("article")

    def write(text: str) -> None:
        line.fill(text)
        page.get_by_role("button", name="Send", exact=True).click()

    write("Tell me a story")
    expect(spoken.last).to_contain_text("word3")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    write("Another story")
    expect(spoken).to_have_count(4)
    expect(spoken.last).to_contain_text("word3")
    write("Be brief")
    expect(spoken).to_have_count(6)
    expect(spoken.last).to_contain_text("In short: Be brief")

    spoken.nth(4).hover()
    spoken.nth(4).get_by_role("button", name="Edit").click()
    page.get_by_label("Edit message").fill("Say it in Latin")
    page.get_by_role("button", name="Send again").click()
    expect(spoken.last).to_contain_text("In short: Say it in Latin")
    expect(spoken.nth(4)).to_contain_text("2/2")
    spoken.last.hover()
    spoken.last.get_by_role("button", name="Fork").click()
    expect(page.get_by_role("button", name="Tell me a story (fork)", exact=True)).to_be_visible()

    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Attach files").click()
    chooser.value.set_files({"name": "seeds.csv", "mimeType": "text/csv", "buffer": b"millet,250"})
    write("What does it cost?")
    expect(spoken).to_have_count(8)
    expect(spoken.nth(6)).to_contain_text("seeds.csv")
    expect(spoken.last).to_contain_text("In short:")

    page.get_by_role("button", name="New talk").click()
    page.get_by_role("button", name="cashier").click()
    write("pay 5")
    page.get_by_role("button", name="Approve").click()
    expect(spoken.last).to_contain_text("5 paid")
    expect(spoken.last).to_contain_text("Approved by you")
    page.reload()
    expect(spoken).to_have_count(2)
    expect(spoken.last).to_contain_text("5 paid")

    page.get_by_label("Search your talks").fill("latin")
    page.get_by_label("Search your talks").press("Enter")
    expect(page.get_by_role("region", name="Sidebar")).to_contain_text("Say it in Latin")
    page.get_by_role("button", name="Tell me a story", exact=True).first.click()
    expect(spoken.nth(4)).to_contain_text("Say it in Latin")
    page.get_by_label("Search your talks").fill("")
    page.get_by_label("Search your talks").press("Enter")
    page.get_by_role("button", name="Menu of Tell me a story").first.click()
    page.get_by_role("menuitem", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("dialog").get_by_role("button", name="Markdown", exact=True).click()
    download.value.save_as(tmp_path / "export.md")
    assert "Tell me a story" in (tmp_path / "export.md").read_text(encoding="utf-8")

    again = page.context.new_page()
    page.close()
    again.goto(page.url.partition("?")[0])
    again.get_by_role("button", name="pay 5", exact=True).click()
    expect(again.get_by_role("log", name="Messages")).to_contain_text("5 paid")
