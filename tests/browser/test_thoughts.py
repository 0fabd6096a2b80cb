"""B4: what an agent thinks and does is folded beside its answer, and can be looked at while it is written."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

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
