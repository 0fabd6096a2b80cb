"""The JavaScript client on a page of the server: the recipe of the guide, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import Server
from tests.servers import ROOT

GUIDE = ROOT / "docs/guides/clients.md"


@pytest.fixture
def signed_in(server: Server, browser: Browser) -> Iterator[BrowserContext]:
    with browser.new_context() as context:
        cookie = server.identity.cookie("ann")
        context.add_cookies([{"name": server.identity.cookie_name, "value": cookie, "url": server.url}])
        yield context


def opened(context: BrowserContext, url: str) -> Page:
    page = context.new_page()
    page.goto(f"{url}/docs")  # any page of the server that has no script of its own
    return page


def test_a_page_holds_a_conversation_with_the_cookie_of_its_browser(server: Server, signed_in: BrowserContext) -> None:
    [recipe] = re.findall(r"^```html\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    [(before, script)] = re.findall(r'^(.*)<script type="module">(.*)</script>$', recipe, re.DOTALL | re.MULTILINE)
    page = opened(signed_in, server.url)
    page.evaluate("(html) => { document.body.innerHTML = html; }", before)
    page.add_script_tag(content=script.replace('profile: "echo"', 'profile: "other"'), type="module")
    expect(page.locator("#answer")).to_have_text("Hello from a page!", timeout=30_000)


def test_a_page_of_another_origin_is_refused(server: Server, signed_in: BrowserContext) -> None:
    other = server.url.replace("localhost", "127.0.0.1")
    told = opened(signed_in, other).evaluate(
        """async (url) => {
          const { connect } = await import("/client/roost.mjs");
          return connect(url, { patience: 0.1 }).me().then(() => "connected", (error) => error.name);
        }""",
        server.url,
    )
    assert told == "Unavailable"
