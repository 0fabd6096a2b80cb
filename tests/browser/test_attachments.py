"""Files of messages on the page: images as thumbnails, other files as chips, opened by the browser's own cookie."""

from __future__ import annotations

import struct
import zlib
from zlib import crc32

import pytest
from playwright.sync_api import FilePayload, expect

from tests.browser.conftest import Visit
from tests.browser.steps import messages, shot
from tests.browser.test_list import no_console_error

pytestmark = pytest.mark.browser

WIDTH = 400


def png(width: int, height: int) -> bytes:
    """A black picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc32(kind + data))

    rows = zlib.compress(b"".join(b"\0" + b"\0" * width for _ in range(height)))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


FILES = {"bird <b>.png": png(WIDTH, 300), "seeds.csv": b"millet,250", "broken.png": b"\x89PNG"}


def test_files_of_a_message_are_shown_and_opened(visit: Visit) -> None:
    page = visit()
    empty = FilePayload(name="nothing", mimeType="x/y", buffer=b"")
    with no_console_error(page):
        given = [FilePayload(name=name, mimeType="x/y", buffer=data) for name, data in FILES.items()]
        page.locator(".roost-compose input[type=file]").set_input_files([*given, given[1], empty])
        chosen = page.get_by_role("list", name="Files of this message")
        expect(chosen.get_by_role("alert")).to_contain_text("empty")
        chosen.get_by_role("button", name="Remove seeds.csv").last.click()
        expect(chosen.get_by_text("Sending…")).to_have_count(0)
        shot(page, "files")
        page.get_by_role("button", name="Send", exact=True).click()
        sent = messages(page).first
        expect(chosen.get_by_role("alert")).to_contain_text("nothing")  # it was not sent, and stays
        chosen.get_by_role("button", name="Remove nothing").click()
        expect(chosen).to_have_count(0)
        picture = sent.get_by_role("img", name="bird <b>.png")
        expect(picture).to_be_visible()
        page.wait_for_function("() => document.querySelector('.roost-thumbnail img').naturalWidth === 400")
        box = picture.bounding_box()
        assert box is not None
        assert box["height"] < 200
        expect(sent.locator(".roost-file")).to_have_text(["seeds.csv10 bytes", "broken.png4 bytes"])
        with page.expect_popup() as opened:
            picture.click()
        assert opened.value.evaluate("() => document.contentType") == "image/png"
        with page.expect_download() as download:
            sent.get_by_role("link", name="seeds.csv").click()
        assert download.value.suggested_filename == "seeds.csv"
        assert download.value.path().read_text() == "millet,250"
        page.reload()
        expect(messages(page).first.get_by_role("img", name="bird <b>.png")).to_be_visible()
        sent.hover()
        expect(sent.locator(".roost-actions button")).to_have_text(["Edit", "Fork"])
        sent.get_by_role("button", name="Edit").click()
        page.get_by_label("Edit message").fill("What is this?")
        page.get_by_role("button", name="Send again").click()
        expect(messages(page).first).to_contain_text("What is this?")
        expect(messages(page).first.get_by_role("img", name="bird <b>.png")).to_be_visible()
