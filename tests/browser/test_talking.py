"""Sending, watching, stopping, interrupting, trying again."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Server, Visit
from tests.browser.steps import (
    SCREENSHOTS,
    choose_policy,
    expect_messages,
    expect_rest,
    expect_steady,
    messages,
    say,
    talk_titles,
    watch,
)

pytestmark = pytest.mark.browser


def test_a_new_visitor_is_invited_and_can_type_at_once(visit: Visit) -> None:
    page = visit()
    expect(page.get_by_text("What would you like to talk about?")).to_be_visible()
    expect(page.get_by_text("Follows instructions.")).to_be_visible()
    expect(page.locator(".roost-input")).to_be_focused()
    expect(messages(page)).to_have_count(0)
    page.keyboard.type("hello")
    page.keyboard.press("Enter")
    expect_messages(page, "hello", "You said: hello")


def test_a_message_is_answered_and_gives_the_talk_its_title_and_address(visit: Visit) -> None:
    page = visit()
    say(page, "hello there")
    expect_messages(page, "hello there", "You said: hello there")
    expect_rest(page)
    expect(page).to_have_url(re.compile(r"\?talk=talk_\w+$"))
    expect(talk_titles(page)).to_have_text(["hello there"])
    say(page, "and again")
    expect_messages(page, "hello there", "You said: hello there", "and again", "You said: and again")


def test_an_answer_is_seen_growing_and_every_message_is_there_once_all_the_time(visit: Visit, server: Server) -> None:
    page = visit()
    watch(page)
    say(page, "held 3")
    expect_messages(page, "held 3", "word3")
    expect(page.get_by_text("Writing…")).to_be_visible()
    expect(messages(page).last).not_to_contain_text("end.")
    server.release()
    expect_messages(page, "held 3", "word3 end.")
    expect_rest(page)
    say(page, "thanks")
    expect_messages(page, "held 3", "word3 end.", "thanks", "You said: thanks")
    expect_rest(page)
    expect_steady(page, 4)


THINKING = """() => document.querySelectorAll(".roost-message").length === 1
    && document.querySelector(".st-key-messages").innerText.includes("Thinking…")"""
"""There is no answer yet, and a sign that there will be one: both at the same moment."""


def test_a_question_that_takes_a_while_shows_that_it_is_being_thought_about(visit: Visit) -> None:
    page = visit()
    say(page, "wait 4")
    page.wait_for_function(THINKING)
    expect_messages(page, "wait 4", "waited")
    expect(page.get_by_text("Thinking…")).to_have_count(0)


def test_stopping_keeps_what_was_said_and_marks_it(visit: Visit) -> None:
    page = visit()
    watch(page)
    say(page, "slow 400")
    expect(messages(page).last).to_contain_text("word2")
    page.get_by_role("button", name="Stop").click()
    expect(messages(page).last).to_contain_text("Interrupted")
    expect_rest(page)
    expect_messages(page, "slow 400", "word2")
    expect(messages(page).last).not_to_contain_text("end.")
    expect_steady(page, 2)


def test_escape_stops_as_well(visit: Visit) -> None:
    page = visit()
    say(page, "slow 400")
    expect(messages(page).last).to_contain_text("word2")
    page.keyboard.press("Escape")
    expect(messages(page).last).to_contain_text("Interrupted")


def test_a_message_sent_meanwhile_interrupts_and_is_answered_in_full(visit: Visit) -> None:
    page = visit()
    watch(page)
    say(page, "slow 400")
    expect(messages(page).last).to_contain_text("word3")
    say(page, "enough")
    expect_messages(page, "slow 400", "Interrupted", "enough", "You said: enough")
    expect_rest(page)
    expect(messages(page).nth(1)).to_contain_text("word3")
    expect(messages(page).nth(1)).not_to_contain_text("end.")
    expect_steady(page, 4)


def test_clicking_around_while_an_answer_is_written_neither_loses_nor_doubles_a_message(visit: Visit) -> None:
    page = visit()
    watch(page)
    say(page, "slow 80")
    expect(messages(page).last).to_contain_text("word2")
    page.get_by_text("Settings of this talk").click()
    page.get_by_label("Model").fill("half typed")
    page.locator(".roost-input").fill("not sent yet")
    expect_messages(page, "slow 80", "word80 end.")
    expect_rest(page)
    expect(page.get_by_label("Model")).to_have_value("half typed")
    expect(page.locator(".roost-input")).to_have_value("not sent yet")
    expect_steady(page, 2)


def test_a_failure_is_one_sentence_with_a_way_to_try_again(visit: Visit) -> None:
    page = visit()
    say(page, "flaky")
    expect(messages(page).get_by_role("alert")).to_contain_text("reference")
    expect_messages(page, "flaky", "an answer")
    page.get_by_role("button", name="Try again").click()
    expect_messages(page, "flaky", "an answer", "flaky", "an answer at last")
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)


def test_a_failure_shows_nothing_of_the_inside(visit: Visit) -> None:
    page = visit()
    say(page, "fail")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    expect_messages(page, "fail", "half an answer")
    expect(page.get_by_text("secret-detail")).to_have_count(0)
    expect(page.get_by_text("ValueError")).to_have_count(0)


def test_the_operator_sees_behind_details_where_the_brain_failed(visit: Visit, server: Server) -> None:
    page = visit(user=server.identity.local_user)
    say(page, "fail")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    shown = page.locator(".roost-details pre")
    expect(shown).not_to_be_visible()
    page.get_by_text("Details").click()
    expect(shown).to_contain_text('raise ValueError("secret-detail-of-the-inside")')
    expect(shown).to_contain_text(re.compile(r"brains\.py\", line \d+, in steered"))
    expect(shown).not_to_contain_text("turn_execution")
    page.screenshot(path=SCREENSHOTS / "details_of_a_failure.png")
    page.reload()
    expect(page.get_by_text("Details")).to_be_visible()


NOTICE_IS_ABOVE_THE_INPUT = """() => {
    const notice = document.querySelector('[role=alert]').getBoundingClientRect();
    const input = document.querySelector('.roost-input').getBoundingClientRect();
    return input.top - notice.bottom >= 0 && input.top - notice.bottom < 120;
}"""


def test_a_refused_message_stays_in_the_input_with_the_reason_above_it(visit: Visit) -> None:
    page = visit()
    choose_policy(page, "is refused")
    say(page, "long 20000")
    expect(messages(page).last).to_contain_text("the-very-end")
    expect_rest(page)
    say(page, "slow 200")
    expect(messages(page).last).to_contain_text("word2")
    say(page, "wait for me")
    notice = page.get_by_role("alert")
    expect(notice).to_have_text(re.compile(r"^[A-Z].*\.$"))
    expect(notice).to_be_in_viewport(ratio=1)
    line = page.locator(".roost-input")
    expect(line).to_have_value("wait for me")
    page.wait_for_function(NOTICE_IS_ABOVE_THE_INPUT)  # both are measured at once, when nothing moves any more
    expect(messages(page)).to_have_count(4)
    page.get_by_role("button", name="Stop").click()
    expect_rest(page)


def choose_guide(page: Page) -> Locator:
    """The guide answers; what it suggests to say."""
    page.get_by_role("button", name="Guide", exact=True).click()
    return page.get_by_role("button", name="Show me markdown")


def test_a_suggestion_clicked_twice_is_sent_once(visit: Visit) -> None:
    page = visit()
    choose_guide(page).dblclick()
    expect(messages(page)).to_have_count(2)
    expect_rest(page)
    expect(talk_titles(page)).to_have_text(["markdown"])


def test_a_suggestion_that_the_browser_sends_twice_is_sent_once(visit: Visit) -> None:
    page = visit()
    choose_guide(page).evaluate("(button) => { button.click(); button.click(); }")
    expect(messages(page)).to_have_count(2)
    expect_rest(page)
    expect(talk_titles(page)).to_have_text(["markdown"])
