"""Files of messages on the page: images as thumbnails, other files as chips, opened by the browser's own cookie."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.steps import messages, say
from tests.browser.test_list import no_console_error

pytestmark = pytest.mark.browser

SEND = """async (talk) => {
  const canvas = Object.assign(document.createElement("canvas"), {width: 400, height: 300});
  const picture = await new Promise((done) => canvas.toBlob(done));
  const ids = [];
  for (const [name, body] of [["bird <b>.png", picture], ["seeds.csv", "millet,250"], ["broken.png", "\\x89PNG"]]) {
    const query = new URLSearchParams({name});
    const reply = await fetch(`/api/v1/attachments?${query}`, {method: "POST", body});
    ids.push((await reply.json()).attachmentId);
  }
  const sent = JSON.stringify({content: "", attachments: ids});
  const headers = {"Content-Type": "application/json"};
  return (await fetch(`/api/v1/talks/${talk}/messages`, {method: "POST", headers, body: sent})).status;
}"""


def test_files_of_a_message_are_shown_and_opened(visit: Visit) -> None:
    page = visit()
    with no_console_error(page):
        say(page, "hello")
        expect(messages(page)).to_have_count(2)
        page.wait_for_url("**?talk=*")
        talk = parse_qs(urlsplit(page.url).query)["talk"][0]
        assert page.evaluate(SEND, talk) == 201
        sent = messages(page).nth(2)
        picture = sent.get_by_role("img", name="bird <b>.png")
        expect(picture).to_be_visible()
        page.wait_for_function("() => document.querySelector('.roost-thumbnail img').naturalWidth === 400")
        box = picture.bounding_box()
        assert box is not None
        assert box["height"] < 200
        expect(sent.locator(".roost-file")).to_have_text(["seeds.csv10 bytes", "broken.png5 bytes"])
        with page.expect_popup() as opened:
            picture.click()
        assert opened.value.evaluate("() => document.contentType") == "image/png"
        with page.expect_download() as download:
            sent.get_by_role("link", name="seeds.csv").click()
        assert download.value.suggested_filename == "seeds.csv"
        assert download.value.path().read_text() == "millet,250"
        page.reload()
        expect(messages(page).nth(2).get_by_role("img", name="bird <b>.png")).to_be_visible()
