"""Path of a newcomer through all pages, who only knows what the labels say."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Visit
from tests.browser.steps import best_cell, choose, logged_errors

pytestmark = pytest.mark.browser


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def menu(page: Page, name: str) -> None:
    """Open a page by its link in the sidebar, which may have a number."""
    page.get_by_test_id("stSidebar").get_by_role("link", name=re.compile(f"^{name}( ·|$)")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)


def test_a_newcomer_finds_the_way_through_all_pages_by_their_labels(visit: Visit) -> None:
    page = visit("/agents")
    errors = logged_errors(page)
    button(page, "Build the tour").click()
    expect(page.get_by_role("region", name="Parts of the tour")).to_be_visible()
    _make_an_agent_that_sleeps(page)
    _wake_it_by_mail(page)
    _approve_an_order(page)
    _play_a_game(page)
    _retry_a_dead_letter(page)
    assert errors == []


def _make_an_agent_that_sleeps(page: Page) -> None:
    button(page, "New agent").click()
    page.get_by_label("Name", exact=True).fill("helper")
    choose(page, page.get_by_role("combobox", name="Profile"), "steered")
    button(page, "Create agent").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("helper")
    button(page, "Sleep").click()
    choose(page, page.get_by_role("combobox", name="Mail"), "Of normal priority or above")
    button(page, "Put to sleep").click()
    expect(page.get_by_role("status").filter(has_text="sleeping")).to_contain_text("until mail")


def _wake_it_by_mail(page: Page) -> None:
    menu(page, "Mail")
    page.get_by_role("link", name="Write").click()
    choose(page, page.get_by_role("combobox", name="To"), "Agent helper")
    page.get_by_label("Subject").fill("Good morning")
    page.get_by_label("Text").fill("Are you awake?")
    button(page, "Send").click()
    expect(page.locator(".roost-letter").last).to_contain_text("You said: ")
    menu(page, "Agents")
    page.get_by_role("link", name="helper", exact=True).click()
    expect(page.get_by_role("row", name="Last woken by")).to_contain_text("mail")


def _approve_an_order(page: Page) -> None:
    menu(page, "Approvals")
    expect(page.get_by_test_id("stMain")).to_contain_text("asked by agent tour-buyer")
    button(page, "Approve").click()
    expect(page.get_by_text("Nothing waits for your approval.")).to_be_visible()
    menu(page, "Mail")
    expect(page.get_by_role("row", name="The order of seeds")).to_contain_text("ordered: 12")


def _play_a_game(page: Page) -> None:
    menu(page, "Meetings")
    button(page, "Call a meeting").click()
    page.get_by_label("Topic").fill("A game")
    choose(page, page.get_by_role("combobox", name="Required participants"), "tour-watcher", exact=True)
    page.keyboard.press("Escape")
    choose(page, page.get_by_role("combobox", name="Game"), "tic-tac-toe")
    button(page, "Call meeting").click()
    state = page.locator(".roost-meeting-state")
    expect(state).to_contain_text("It is your move")
    for _ in range(5):
        cell = best_cell(page.locator(".roost-cell").all_inner_texts())
        button(page, f"Cell {cell}, empty").click()
        expect(page.locator(".roost-cell").nth(cell - 1)).to_have_text("X")
        expect(state).to_contain_text(re.compile("your move|win|draw"))
        if "your move" not in state.inner_text():
            break
    expect(state).to_contain_text(re.compile("You win|draw"))


def _retry_a_dead_letter(page: Page) -> None:
    menu(page, "Monitor")
    page.get_by_role("radio", name="Dead letters").click()
    letter = page.get_by_role("row").filter(has_text="tour-watcher")
    letter.get_by_role("checkbox").check()
    button(page, "Retry").click()
    expect(page.get_by_text("Retried: 1.")).to_be_visible()
    expect(letter).to_be_visible()  # it has failed again
    letter.get_by_role("link", name="Open run").click()
    expect(page).to_have_url(re.compile("/runs.run="))
    expect(page.get_by_test_id("stMain")).to_contain_text("Water the plants in the shed")
    expect(page.get_by_test_id("stMain")).to_contain_text("Failed")
