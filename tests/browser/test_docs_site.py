"""The docs as a site: it builds without a warning, can be searched, and asks no other host for anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.steps import shot
from tests.servers import ROOT

FETCHED = {"audio": "src", "embed": "src", "iframe": "src", "img": "src", "script": "src", "source": "src"}
"""Elements that a browser fetches by itself; `link` elements are looked at by what they are for."""
PASSIVE = {"canonical", "next", "prev", "edit"}
"""Relations of a `link` element that a browser does not fetch."""


class Fetches(HTMLParser):
    """URLs that a browser fetches for a page."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in FETCHED:
            self.urls.append(given.get(FETCHED[tag]) or "")
        elif tag == "link" and given.get("rel") not in PASSIVE:
            self.urls.append(given.get("href") or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_of_the_docs_is_on_the_site(site: Path) -> None:
    pages = {path.relative_to(ROOT / "docs").with_suffix("") for path in (ROOT / "docs").rglob("*.md")}
    built = {path.parent.relative_to(site) for path in site.rglob("index.html")}
    named = {path.parent if path.name == "README" else path for path in pages}
    assert named <= built
    assert {Path(), Path("changelog"), Path("contributing")} <= built


def test_no_page_asks_another_host(site: Path) -> None:
    for path in site.rglob("*.html"):
        fetches = Fetches()
        fetches.feed(path.read_text())
        assert [url for url in fetches.urls if urlsplit(url).netloc] == [], path
    for path in site.rglob("*.css"):
        assert re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", path.read_text()) == [], path


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


@pytest.fixture
def served(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.browser
def test_a_search_finds_a_page_and_nothing_is_asked_elsewhere(served: str, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme="dark")
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    page = context.new_page()
    page.goto(f"{served}/start/")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Start")
    expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "slate")
    expect(page.locator(".md-search-result__meta")).to_contain_text("Type to start searching")  # the index is loaded
    page.get_by_role("textbox", name="Search").press_sequentially("dead letters")  # it listens to keys
    page.locator(".md-search-result__link").first.click()
    expect(page.locator("article")).to_contain_text("dead letter")
    shot(page, "docs-site")
    assert {urlsplit(url).hostname for url in asked} == {"127.0.0.1"}
    context.close()
