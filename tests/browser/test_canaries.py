"""S5: what a page is sent holds no secret of the server, whatever tools and errors say."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import WebSocket, expect

from tests.browser.conftest import CANARY, Visit
from tests.browser.steps import expect_messages, expect_rest, messages, say

pytestmark = pytest.mark.browser


def test_no_secret_of_a_tool_or_an_error_reaches_the_browser(visit: Visit) -> None:
    sent: list[bytes] = []

    def keep(frame: str | bytes) -> None:
        sent.append(frame if isinstance(frame, bytes) else json.dumps(json.loads(frame), ensure_ascii=False).encode())

    def listen(socket: WebSocket) -> None:
        socket.on("framereceived", keep)

    page = visit()
    page.on("websocket", listen)
    page.reload()
    say(page, "leak")
    expect_messages(page, "leak", "half an answer")
    expect_rest(page)
    messages(page).get_by_text("Thoughts and steps").click()
    expect(page.get_by_text("asked with •••")).to_be_visible()
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    page.get_by_text("Settings of this talk").click()
    expect(page.get_by_label("System prompt")).to_be_visible()
    assert CANARY not in page.content()
    assert any("asked with •••".encode() in frame for frame in sent), "what is shown came this way"
    assert not [frame for frame in sent if CANARY.encode() in frame]
