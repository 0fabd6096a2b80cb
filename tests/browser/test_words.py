"""Words of people and agents are text: shown as they were meant, and harmless."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.brains import MARKDOWN
from tests.browser.conftest import Visit
from tests.browser.steps import expect_messages, expect_rest, messages, say, talk_titles

pytestmark = pytest.mark.browser

HOSTILE = '<script>window.hacked = 1</script><img src="http://pictures.example/x.png" onerror="window.hacked = 1">'


def expect_unharmed(page: Page) -> None:
    assert page.evaluate("() => window.hacked") is None
    expect(page.locator(".st-key-messages img")).to_have_count(0)


def test_markdown_is_rendered_with_code_and_a_table(visit: Visit) -> None:
    page = visit()
    say(page, "markdown")
    expect(messages(page)).to_have_count(2)
    answer = messages(page).last
    expect(answer.locator("h3")).to_have_text("Heading")
    expect(answer.locator("td")).to_have_text(["a", "1"])
    expect(answer.locator("pre code")).to_contain_text("#![not a picture](in code)")
    expect(answer.locator("em")).to_have_text("emphasis")


def test_html_in_an_answer_is_text_and_pictures_are_links(visit: Visit) -> None:
    page = visit()
    say(page, "markdown")
    answer = messages(page).last
    expect(answer).to_contain_text("<script>window.hacked = 1</script>")
    expect(answer.locator('a[href="http://pictures.example/pixel.png"]')).to_have_text("a picture")
    expect(answer.locator('a[href="http://pictures.example/reference.png"]')).to_have_text("by reference")
    expect_unharmed(page)


def test_what_a_person_types_is_shown_exactly_so_also_as_the_title(visit: Visit) -> None:
    page = visit()
    say(page, HOSTILE)
    expect_messages(page, HOSTILE, "You said: ")
    expect_rest(page)
    expect(talk_titles(page)).to_contain_text(["<script>window.hacked = 1"])
    expect_unharmed(page)


def test_a_persons_line_breaks_spaces_and_signs_are_kept(visit: Visit) -> None:
    typed = "# no heading\n\n    four spaces\n* no list  *no emphasis* :red[no] $no$ &amp; 2 -> 3"
    page = visit()
    page.locator(".roost-input").fill(typed)
    page.keyboard.press("Enter")
    expect(messages(page).first.locator(".roost-text")).to_be_visible()
    assert messages(page).first.locator(".roost-text").text_content() == typed


def test_a_very_long_message_is_shown_whole(visit: Visit) -> None:
    page = visit()
    say(page, "long 100000")
    expect(messages(page).last).to_contain_text("the-very-end")
    expect_rest(page)
    assert len(messages(page).last.inner_text()) > 99_000
    typed = "y" * 100_000
    say(page, typed)
    expect(messages(page)).to_have_count(4)
    assert messages(page).nth(2).locator(".roost-text").text_content() == typed
    assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")


@pytest.fixture
def page(visit: Visit) -> Page:
    return visit(permissions=["clipboard-read", "clipboard-write"])


def copied(page: Page) -> str:
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    return str(page.evaluate("() => navigator.clipboard.readText()"))


def test_an_answer_is_copied_as_it_was_written_and_not_as_it_looks(page: Page) -> None:
    say(page, "markdown")
    expect(messages(page)).to_have_count(2)
    messages(page).last.hover()
    messages(page).last.get_by_role("button", name="Copy", exact=True).click()
    assert copied(page) == MARKDOWN
    expect(page.get_by_role("button", name="Copied")).to_have_count(0)
    expect_unharmed(page)


def test_a_message_can_be_copied_by_keyboard_to_the_letter(page: Page) -> None:
    typed = "\ufeff" + HOSTILE + "\n\n  *ä* \U0001f986 -->]]>\t\"'</button></textarea>  ."
    page.locator(".roost-input").fill(typed)
    page.keyboard.press("Enter")
    expect(messages(page)).to_have_count(2)
    expect_rest(page)
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.textContent") == "Copy":
            break
    page.keyboard.press("Enter")
    assert copied(page) == typed
    expect(messages(page).first.locator(".roost-copy")).to_be_focused()
    expect_unharmed(page)


def test_an_answer_can_be_copied_where_the_browser_has_no_clipboard(page: Page) -> None:
    say(page, "copy me")
    expect_messages(page, "copy me", "You said: copy me")
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed')); }")
    messages(page).last.hover()
    messages(page).last.get_by_role("button", name="Copy", exact=True).click()
    assert copied(page) == "You said: copy me"


def test_an_answer_that_is_being_written_has_nothing_to_copy_yet(page: Page) -> None:
    say(page, "slow 60")
    expect(messages(page).last).to_contain_text("word3")
    expect(messages(page).last.get_by_role("button")).to_have_count(0)
    expect_messages(page, "slow 60", "word60 end.")
    expect(messages(page).last.locator(".roost-copy")).to_have_count(1)
