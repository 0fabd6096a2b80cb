"""Search in the sidebar, and export from the menu of a talk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from roost.ui.design.components import SCRIPT
from tests.browser.conftest import Visit
from tests.browser.steps import expect_drawn, expect_messages, expect_rest, messages, open_menu, say, shot
from tests.browser.test_looks import start_new

pytestmark = pytest.mark.browser


FOCUSED_MENU = '[role="menu"]:focus-within'


def open_menu_by_key(page: Page, title: str) -> None:
    expect_drawn(page)  # a menu closes when the list of talks changes
    page.get_by_role("button", name=f"Menu of {title}").press("Enter")
    expect(page.locator(FOCUSED_MENU)).to_be_visible()


def find(page: Page, query: str) -> None:
    field = page.get_by_placeholder("Search")
    field.fill(query)
    field.press("Enter")


def test_a_message_is_found_by_its_words_and_opened(visit: Visit) -> None:
    page = visit()
    for text in ("apples and pears", "about **plums** <b>x</b>"):
        start_new(page)
        say(page, text)
        expect(messages(page)).to_have_count(2)
        expect_rest(page)
    find(page, "pear")
    found = page.locator(".st-key-talks")
    expect(found).to_contain_text("apples and pears")
    expect_drawn(page)
    expect(found.locator("strong").first).to_have_text("pears")
    shot(page, "search")
    page.locator(".st-key-hit_0").get_by_role("button", name="apples and pears", exact=True).click()
    expect_messages(page, "apples and pears", "You said: apples and pears")
    find(page, "plums")
    expect(found).to_contain_text("about **plums** <b>x</b>")
    find(page, "nowhere to be found")
    expect(found).to_contain_text("No talk and no message contains these words.")
    find(page, "")
    expect(found.get_by_role("button", name="Menu of")).to_have_count(2)


def test_a_talk_is_found_by_its_title(visit: Visit) -> None:
    page = visit()
    say(page, "pears")
    expect_messages(page, "pears", "You said: pears")
    expect_rest(page)
    open_menu_by_key(page, "pears")
    page.keyboard.press("Enter")
    title = page.get_by_role("dialog").get_by_label("Title")
    title.fill("x" * 201)
    title.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("at most 200 characters")
    title.fill("Fruit of autumn")
    title.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    start_new(page)
    field = page.get_by_placeholder("Search")
    field.fill("autumn")
    expect(page.locator(".st-key-search")).to_contain_text("Press Enter")
    field.press("Enter")
    page.locator(".st-key-hit_talk_0").get_by_role("button", name="Fruit of autumn").click()
    expect_messages(page, "pears", "You said: pears")


def test_a_talk_that_opens_takes_no_focus_from_a_menu(visit: Visit) -> None:
    page = visit()
    say(page, "pears")
    expect_messages(page, "pears", "You said: pears")
    expect_rest(page)
    open_menu_by_key(page, "pears")
    page.evaluate(SCRIPT)  # as when a talk is drawn late
    expect(page.locator(FOCUSED_MENU)).to_be_visible()


def test_a_message_found_far_up_is_brought_into_view(visit: Visit) -> None:
    page = visit(user="old")
    find(page, '"question 0"')
    expect(page.locator(".st-key-talks strong")).to_have_count(2)
    expect_drawn(page)
    page.locator(".st-key-hit_1").get_by_role("button", name="A long talk", exact=True).click()
    expect(page.locator('.roost-message[data-seq="1"]')).to_be_in_viewport()
    expect(page.get_by_role("button", name="Jump to latest")).to_be_visible()


@pytest.mark.parametrize("label", ["Markdown", "JSON"])
def test_a_talk_is_downloaded_with_all_its_messages(visit: Visit, label: str, tmp_path: Path) -> None:
    page = visit()
    say(page, "apples")
    expect_messages(page, "apples", "You said: apples")
    expect_rest(page)
    open_menu(page, "apples")
    page.get_by_role("menuitem", name="Export").click()
    with page.expect_download() as started:
        page.get_by_role("dialog").get_by_role("button", name=label, exact=True).click()
    file = tmp_path / started.value.suggested_filename
    started.value.save_as(file)
    text = file.read_text(encoding="utf-8")
    assert file.name == ("apples.md" if label == "Markdown" else "apples.json")
    assert "You said: apples" in text
    if label == "JSON":
        assert json.loads(text)["messages"][0]["text"] == "apples"


def test_a_talk_that_was_exported_can_be_imported(visit: Visit, tmp_path: Path) -> None:
    page = visit()
    say(page, "apples")
    expect_messages(page, "apples", "You said: apples")
    expect_rest(page)
    open_menu(page, "apples")
    page.get_by_role("menuitem", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("dialog").get_by_role("button", name="JSON").click()
    download.value.save_as(tmp_path / "talk.json")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Import a talk").click()
    files = page.get_by_role("dialog").locator("input[type=file]")
    files.set_input_files({"name": "x.json", "mimeType": "application/json", "buffer": b"{}"})
    expect(page.get_by_role("dialog")).to_contain_text("The transcript has no field 'kind'")
    files.set_input_files(tmp_path / "talk.json")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect_messages(page, "apples", "You said: apples")
    expect(page.get_by_role("button", name="Menu of apples")).to_have_count(2)
