"""A real server, a real browser, and people who each have their own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from playwright.sync_api import Error as PlaywrightError

import roost
from roost.api.auth import Identity, identity
from roost.stores.sqlite import owner
from tests.browser.brains import RELEASED, steered
from tests.browser.steps import SCREENSHOTS
from tests.forks import Popen
from tests.servers import ROOT, find_chromium

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SETTINGS = """
default_profile = "steered"
tools = ["tests.browser.brains:reveal", "tests.browser.brains:pay", "tests.browser.brains:price"]

[profiles.steered]
brain = "tests.browser.brains:steered"
description = "Follows instructions."

[profiles.other]
brain = "echo"
description = "Says the same."
"""
CANARY = "canary-that-nobody-sees"
"""A secret of the server, known to it as one by the name of its variable."""
START_LIMIT = 60
LONG_TALK = 500
OTHER_TALKS = 15


@dataclass(frozen=True)
class Server:
    """A running `roost up`. `long_talk` was held before it started, by the user `old`, after some others."""

    url: str
    identity: Identity
    long_talk: str
    process: subprocess.Popen[bytes]
    token: str
    """Of its local user, for programs."""
    folder: Path

    def release(self) -> None:
        """End the answer to `held N`, which has so far lasted as long as the test needs it."""
        (self.folder / RELEASED).touch()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("roost")
    (folder / "roost.toml").write_text(SETTINGS)
    long_talk = _hold_long_talk(folder / "roost.db")
    with up(folder, free_port()) as (url, process):
        token = owner(folder / "roost.db.lock")["token"]
        yield Server(url, identity(folder), long_talk, process, token, folder)


@contextmanager
def up(folder: Path, port: int) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run `roost up` on a folder that has its settings; at the end it is asked to end, and does."""
    environment = os.environ | {"ROOST_DATA": str(folder), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    environment["CANARY_TOKEN"] = CANARY
    command = [sys.executable, "-m", "roost.cli.main", "up", "--port", str(port), "--no-browser"]
    with (folder / "output").open("ab") as output:
        process = Popen[bytes](command, cwd=folder, env=environment, stdout=output, stderr=output)
        try:
            wait_until_ready(process, port, "/readyz", folder / "output")
            yield f"http://localhost:{port}", process
        finally:
            process.terminate()
            process.wait(START_LIMIT)


def _hold_long_talk(file: Path) -> str:
    with roost.open(f"sqlite:///{file}", brains={"steered": steered}) as service:
        for number in range(OTHER_TALKS):
            title = f"Talk number {number}" + " with a title that is longer than its place" * (number % 3 == 1)
            service.create_talk_session("old", profile="steered", title=title)
        talk = service.create_talk_session("old", profile="steered", title="A long talk")
        for number in range(LONG_TALK // 2):
            service.add_message("old", talk, f"question {number}", key=f"{number}")
            for _ in service.stream_messages("old", talk):
                pass
    return talk


def wait_until_ready(process: subprocess.Popen[bytes], port: int, path: str, output: Path) -> None:
    for _ in range(START_LIMIT * 20):
        try:
            with closing(HTTPConnection("localhost", port, timeout=5)) as connection:
                connection.request("GET", path)
                if connection.getresponse().status == 200:
                    return
        except OSError:
            pass
        try:
            process.wait(0.05)
            break
        except subprocess.TimeoutExpired:
            continue
    raise RuntimeError(f"the server did not start:\n{output.read_text()}")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """For one module at a time: while Playwright is open, an event loop runs on this thread."""
    path = find_chromium()
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield opened
        opened.close()


Visit = Callable[..., Page]
OPEN: list[Page] = []
"""Pages of the test that runs."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Function) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what the open pages show to the report of a failure, and take a picture of each."""
    report = yield
    if report.failed:
        for number, page in enumerate(OPEN):
            with suppress(PlaywrightError):
                report.sections.append((f"page {number}: {page.url}", page.locator("body").inner_text(timeout=5_000)))
                page.screenshot(path=SCREENSHOTS / f"failed-{item.originalname}-{number}.png")
    return report


def expect_ready(page: Page) -> None:
    """The page is drawn: the talk page has its input, every other one its title."""
    expect(page.locator(".roost-input:enabled, .st-key-title h1").first).to_be_visible()


@pytest.fixture
def visit(server: Server, browser: Browser) -> Iterator[Visit]:
    """Open a page as a person of one's own, or as the named `user`; at the end nothing was asked of another host."""
    contexts: list[BrowserContext] = []
    asked: list[str] = []

    def opened(path: str = "/", *, user: str | None = None, **options: Any) -> Page:
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 800}} | options))
        contexts.append(context)
        context.on("request", lambda request: asked.append(request.url))
        context.set_default_timeout(30_000)
        if user is not None:
            cookie = server.identity.cookie(user)
            context.add_cookies([{"name": server.identity.cookie_name, "value": cookie, "url": server.url}])
        page = context.new_page()
        OPEN.append(page)
        page.goto(server.url + path)
        expect_ready(page)
        return page

    yield opened
    OPEN.clear()
    for context in contexts:
        context.close()
    assert [url for url in asked if urlsplit(url).hostname not in ("localhost", None)] == []
