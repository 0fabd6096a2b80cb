"""Edit and resend, regenerate, fork: on the page, by visible labels."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Visit
from tests.browser.steps import expect_messages, expect_rest, messages, say, shot, talk_titles

pytestmark = pytest.mark.browser


def choose(message: Locator, label: str) -> None:
    message.hover()
    message.get_by_role("button", name=label, exact=True).click()


def talked(visit: Visit, *texts: str) -> Page:
    page = visit()
    for number, text in enumerate(texts, 1):
        say(page, text)
        expect(messages(page)).to_have_count(2 * number)
        expect_rest(page)
    return page


def edit(page: Page, place: int, text: str) -> None:
    choose(messages(page).nth(place), "Edit")
    page.get_by_label("Edit message").fill(text)
    page.get_by_role("button", name="Send again").click()


def test_an_edited_message_is_answered_in_its_place_and_both_versions_can_be_read(visit: Visit) -> None:
    page = talked(visit, "apples", "pears")
    edit(page, 2, "plums")
    expect_messages(page, "apples", "You said: apples", "plums", "You said: plums")
    expect_rest(page)
    versions = messages(page).nth(2).locator(".roost-versions")
    expect(versions).to_contain_text("2/2")
    shot(page, "edited")
    versions.get_by_role("button", name="Previous version").click()
    expect_messages(page, "apples", "You said: apples", "pears", "You said: pears")
    expect(messages(page).nth(2).locator(".roost-versions")).to_contain_text("1/2")
    page.reload()
    expect_messages(page, "apples", "You said: apples", "pears", "You said: pears")
    messages(page).nth(2).get_by_role("button", name="Next version").click()
    expect_messages(page, "apples", "You said: apples", "plums", "You said: plums")
    expect(talk_titles(page)).to_have_count(1)


def test_an_answer_is_regenerated_and_the_first_one_is_kept(visit: Visit) -> None:
    page = talked(visit, "apples")
    choose(messages(page).nth(1), "Regenerate")
    expect(messages(page).nth(1).locator(".roost-versions")).to_contain_text("2/2")
    expect_messages(page, "apples", "You said: apples")
    expect_rest(page)


def test_a_fork_is_a_talk_of_its_own(visit: Visit) -> None:
    page = talked(visit, "apples", "pears")
    choose(messages(page).nth(1), "Fork")
    expect_messages(page, "apples", "You said: apples")
    expect(talk_titles(page)).to_have_count(2)
    say(page, "plums")
    expect_messages(page, "apples", "You said: apples", "plums", "You said: plums")


def test_editing_can_be_left_by_escape_and_changes_nothing(visit: Visit) -> None:
    page = talked(visit, "apples")
    choose(messages(page).first, "Edit")
    page.get_by_label("Edit message").fill("other")
    shot(page, "editing")
    page.keyboard.press("Escape")
    expect(page.get_by_label("Edit message")).to_have_count(0)
    expect_messages(page, "apples", "You said: apples")
    expect(page.locator(".roost-versions:visible")).to_have_count(0)


def test_a_message_is_edited_in_view_and_the_second_click_of_a_double_click_does_nothing(visit: Visit) -> None:
    page = talked(visit, "first", "long 5000")
    first = messages(page).first
    choose(first, "Edit")
    area = page.get_by_label("Edit message")
    expect(area).to_be_in_viewport(ratio=1)
    box = area.bounding_box()
    assert box is not None
    assert box["y"] > 60  # below the header
    area.fill("again")
    page.get_by_role("button", name="Send again").dblclick()
    expect_messages(page, "again", "You said: again")
    expect(first.get_by_text("2/2")).to_be_visible()
    expect_rest(page)
    expect(talk_titles(page)).to_have_count(1)
    messages(page).last.hover()
    messages(page).last.get_by_role("button", name="Regenerate").dblclick()
    expect(messages(page).last.get_by_text("2/2")).to_be_visible()
    expect_rest(page)
    expect(messages(page).last.get_by_text("2/2")).to_be_visible()
