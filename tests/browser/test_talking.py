"""Sending, watching, stopping, interrupting, trying again."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.steps import (
    expect_messages,
    expect_rest,
    expect_steady,
    messages,
    say,
    shot,
    talk_titles,
    watch,
)

pytestmark = pytest.mark.browser


def test_a_new_visitor_is_invited_and_can_type_at_once(visit: Visit) -> None:
    page = visit()
    expect(page.get_by_text("What would you like to talk about?")).to_be_visible()
    expect(page.get_by_text("Does what it is told.")).to_be_visible()
    expect(page.get_by_test_id("stChatInputTextArea")).to_be_focused()
    expect(messages(page)).to_have_count(0)
    shot(page, "empty")
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


def test_an_answer_is_seen_growing_and_every_message_is_there_once_all_the_time(visit: Visit) -> None:
    page = visit()
    watch(page)
    say(page, "slow 60")
    expect_messages(page, "slow 60", "word3")
    expect(page.get_by_text("Writing …")).to_be_visible()
    expect(messages(page).last).not_to_contain_text("word60")
    shot(page, "busy")
    expect_messages(page, "slow 60", "word60 end.")
    expect_rest(page)
    say(page, "thanks")
    expect_messages(page, "slow 60", "word60 end.", "thanks", "You said: thanks")
    expect_rest(page)
    expect_steady(page, 4)


def test_a_question_that_takes_a_while_shows_that_it_is_being_thought_about(visit: Visit) -> None:
    page = visit()
    say(page, "wait 1")
    expect(page.get_by_text("Thinking …")).to_be_visible()
    expect(messages(page)).to_have_count(1)
    expect_messages(page, "wait 1", "waited")
    expect(page.get_by_text("Thinking …")).to_have_count(0)


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
    shot(page, "interrupted")
    expect_steady(page, 4)


def test_clicking_around_while_an_answer_is_written_neither_loses_nor_doubles_a_message(visit: Visit) -> None:
    page = visit()
    watch(page)
    say(page, "slow 80")
    expect(messages(page).last).to_contain_text("word2")
    page.get_by_text("Settings of this talk").click()
    page.get_by_label("Model").fill("half typed")
    page.get_by_test_id("stChatInputTextArea").fill("not sent yet")
    expect_messages(page, "slow 80", "word80 end.")
    expect_rest(page)
    expect(page.get_by_label("Model")).to_have_value("half typed")
    expect(page.get_by_test_id("stChatInputTextArea")).to_have_value("not sent yet")
    expect_steady(page, 2)


def test_a_failure_is_one_sentence_with_a_way_to_try_again(visit: Visit) -> None:
    page = visit()
    say(page, "flaky")
    expect(page.get_by_test_id("stAlert")).to_contain_text("reference")
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
    shot(page, "failed")


def test_a_refused_message_stays_in_the_line(visit: Visit) -> None:
    page = visit()
    page.get_by_text("Settings of the next talk").click()
    page.get_by_role("button", name="Save").hover()  # waits until the settings have unfolded
    page.get_by_label("A message sent during an answer").click()
    page.get_by_role("option", name="is refused").click()
    page.get_by_role("button", name="Save").click()
    say(page, "slow 200")
    expect(messages(page).last).to_contain_text("word2")
    say(page, "wait for me")
    expect(page.get_by_test_id("stAlert")).to_be_visible()
    expect(page.get_by_test_id("stChatInputTextArea")).to_have_value("wait for me")
    expect(messages(page)).to_have_count(2)
    page.get_by_role("button", name="Stop").click()
    expect_rest(page)
