"""B4: what an agent thinks and does is folded beside its answer, and can be looked at while it is written."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from roost.core.talks.side_channels import answered
from tests.browser.conftest import Visit
from tests.browser.steps import expect_messages, expect_rest, expect_steady, messages, say, shot, watch

pytestmark = pytest.mark.browser


def test_thoughts_are_folded_and_stay_open_while_the_answer_grows(visit: Visit) -> None:
    page = visit()
    watch(page)
    say(page, "ponder It costs four and a quarter, which is not much for tea of this kind.")
    folded = messages(page).get_by_text("Thoughts and steps")
    expect(folded).to_be_visible()
    expect(page.get_by_text("thought1 ")).not_to_be_visible()
    folded.click()
    expect(page.get_by_text("thought1 ")).to_be_visible()
    expect(page.get_by_text("summarized here")).to_be_visible()
    expect_messages(page, "ponder", "It costs four and a quarter, which is not much for tea of this kind.")
    expect_rest(page)
    expect(page.get_by_text("thought10")).to_be_visible()
    expect(page.get_by_text("4.25 <b>and</b>")).to_be_visible()
    expect_steady(page, 2)
    shot(page, "thoughts")
    page.reload()
    expect(page.get_by_text("thought10")).not_to_be_visible()
    expect(messages(page).get_by_text("Thoughts and steps")).to_be_visible()
    expect(page.locator(".roost-input")).to_be_visible()
    shot(page, "thoughts-folded")


def test_results_of_tools_that_a_client_has_run_are_cards_and_not_lines_of_json(visit: Visit) -> None:
    page = visit()
    say(page, answered("call_1", "18 degrees in the nest").strip())
    folded = messages(page).get_by_text("Tool results")
    folded.click()
    expect(messages(page).get_by_label("Result")).to_have_text("18 degrees in the nest")
    expect(messages(page).first.get_by_text('{"result"')).to_have_count(0)
    shot(page, "tool-results")
