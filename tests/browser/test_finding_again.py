"""Reloads, tabs, people, the back button, talks that are gone."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Server, Visit
from tests.browser.steps import (
    delete,
    expect_drawn,
    expect_messages,
    expect_rest,
    expect_steady,
    messages,
    open_menu,
    say,
    talk_titles,
    watch,
)

pytestmark = pytest.mark.browser


def test_a_reload_in_the_middle_finds_the_answer_still_growing(visit: Visit, server: Server) -> None:
    page = visit()
    say(page, "held 3")
    expect(messages(page).last).to_contain_text("word3")
    page.reload()
    expect_messages(page, "held 3", "word3")
    expect(page.get_by_text("Writing…")).to_be_visible()
    server.release()
    expect_messages(page, "held 3", "word3 end.")
    expect_rest(page)


def test_a_second_tab_sees_the_same_talk_and_what_is_said_in_the_first(visit: Visit) -> None:
    first = visit()
    say(first, "slow 60")
    expect(messages(first).last).to_contain_text("word2")
    second = first.context.new_page()
    second.goto(first.url)
    expect_messages(second, "slow 60", "word60 end.")
    watch(second)
    say(first, "hello again")
    expect_messages(second, "slow 60", "word60 end.", "hello again", "You said: hello again")
    expect_messages(first, "slow 60", "word60 end.", "hello again", "You said: hello again")
    expect_steady(second, 4)


def test_two_people_never_see_each_others_talks(visit: Visit, server: Server) -> None:
    ann, bob = visit(), visit()
    say(ann, "the words of ann")
    expect_messages(ann, "the words of ann", "You said: the words of ann")
    say(bob, "the words of bob")
    expect_messages(bob, "the words of bob", "You said: the words of bob")
    expect(talk_titles(bob)).to_have_text(["the words of bob"])
    bob.goto(ann.url)
    expect(bob.get_by_text("This talk no longer exists")).to_be_visible()
    expect(messages(bob)).to_have_count(0)
    expect(bob.get_by_text("the words of ann")).to_have_count(0)


def test_the_back_button_leads_to_the_talk_before(visit: Visit) -> None:
    page = visit()
    say(page, "first talk")
    expect_messages(page, "first talk", "You said: first talk")
    page.get_by_role("button", name="New talk").click()
    expect(page.get_by_text("What would you like to talk about?")).to_be_visible()
    expect(messages(page)).to_have_count(0)
    say(page, "second talk")
    expect_messages(page, "second talk", "You said: second talk")
    page.go_back()
    expect(page.get_by_text("What would you like to talk about?")).to_be_visible()
    expect(messages(page)).to_have_count(0)
    expect_drawn(page)
    page.go_back()
    expect_messages(page, "first talk", "You said: first talk")
    page.go_forward()
    page.go_forward()
    expect_messages(page, "second talk", "You said: second talk")


def test_choosing_a_talk_in_the_list_opens_it(visit: Visit) -> None:
    page = visit()
    for words in ("apples", "pears"):
        page.get_by_role("button", name="New talk").click()
        expect(messages(page)).to_have_count(0)
        say(page, words)
        expect_messages(page, words, f"You said: {words}")
    expect(talk_titles(page)).to_have_text(["pears", "apples"])
    talk_titles(page).nth(1).click()
    expect_messages(page, "apples", "You said: apples")


def test_an_answer_continues_while_another_talk_is_open(visit: Visit, server: Server) -> None:
    page = visit()
    say(page, "held 2")
    expect(messages(page).last).to_contain_text("word2")
    page.get_by_role("button", name="New talk").click()
    expect(messages(page)).to_have_count(0)
    expect(talk_titles(page)).to_have_text(["held 2 ●"])
    server.release()
    talk_titles(page).first.click()
    expect_messages(page, "held 2", "word2 end.")
    expect(talk_titles(page)).to_have_text(["held 2"])


def test_a_talk_can_be_renamed_in_its_menu(visit: Visit) -> None:
    page = visit()
    say(page, "hello")
    expect_messages(page, "hello", "You said: hello")
    open_menu(page, "hello")
    page.get_by_role("menuitem", name="Rename").click()
    expect(page.get_by_label("Title")).to_be_focused()
    page.get_by_label("Title").fill("")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("The title must not be empty.")
    page.get_by_label("Title").fill("A *better* :red[name] :smile: -> $x$")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(talk_titles(page)).to_have_text(["A *better* :\u2060red[name] :\u2060smile: -\u2060> $x$"])
    expect_messages(page, "hello", "You said: hello")


def test_a_talk_is_deleted_in_its_menu_after_asking(visit: Visit) -> None:
    page = visit()
    say(page, "hello")
    expect_messages(page, "hello", "You said: hello")
    open_menu(page, "hello")
    page.get_by_role("menuitem", name="Delete").click()
    expect(page.get_by_role("dialog")).to_contain_text("This can't be undone")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(talk_titles(page)).to_have_text(["hello"])
    delete(page, "hello")
    expect(talk_titles(page)).to_have_count(0)
    expect(messages(page)).to_have_count(0)
    expect(page.get_by_role("alert")).to_have_count(0)


def test_the_menu_of_a_talk_needs_no_mouse_and_escape_in_it_stops_no_answer(visit: Visit, server: Server) -> None:
    page = visit()
    say(page, "held 2")
    expect(messages(page).last).to_contain_text("word2")
    page.get_by_role("button", name="Menu of held 2").press("Enter")
    expect(page.get_by_role("menuitem", name="Rename")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("menuitem", name="Rename")).to_have_count(0)
    server.release()
    expect_messages(page, "held 2", "word2 end.")
    expect_rest(page)
    page.get_by_role("button", name="Menu of held 2").press("Enter")
    page.get_by_role("menuitem", name="Delete").press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("Delete this talk?")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".roost-input")).to_be_focused()


def test_a_talk_deleted_in_another_tab_says_so_and_leaves_a_new_one(visit: Visit) -> None:
    first = visit()
    say(first, "hello")
    expect_messages(first, "hello", "You said: hello")
    second = first.context.new_page()
    second.goto(first.url)
    expect_messages(second, "hello", "You said: hello")
    delete(first, "hello")
    expect(second.get_by_text("This talk no longer exists")).to_be_visible()
    say(second, "a new one")
    expect_messages(second, "a new one", "You said: a new one")


def test_the_profile_chosen_for_a_new_talk_answers_it(visit: Visit) -> None:
    page = visit()
    expect(page.get_by_text("Says the same.")).to_be_visible()
    card = page.get_by_role("button", name="other", exact=True)
    card.press("Enter")
    expect(page.locator('[class*="st-key-card_"]:has(.roost-chosen)')).to_contain_text("other")
    expect(card).to_be_focused()
    say(page, "just this")
    expect(messages(page)).to_have_count(2)
    expect(messages(page).last).to_contain_text("just this")
    expect(messages(page).last).not_to_contain_text("You said")


def test_a_long_history_comes_by_pages_newest_first(visit: Visit, server: Server) -> None:
    page = visit(f"/?talk={server.long_talk}", user="old")
    expect(messages(page)).to_have_count(50)
    expect(messages(page).last).to_contain_text("You said: question 249")
    expect(messages(page).first).to_contain_text("question 225")
    for shown in range(100, 501, 50):
        page.get_by_role("button", name="Show older messages").click()
        expect(messages(page)).to_have_count(shown)
    expect(page.get_by_role("button", name="Show older messages")).to_have_count(0)
    texts = [text.split("\n")[0] for text in messages(page).all_inner_texts()]
    assert texts == [words for n in range(250) for words in (f"question {n}", f"You said: question {n}")]


def test_writing_in_a_long_talk_doubles_nothing(visit: Visit, server: Server) -> None:
    page = visit(f"/?talk={server.long_talk}", user="old")
    expect(messages(page)).to_have_count(50)
    watch(page)
    say(page, "slow 20")
    expect(messages(page).last).to_contain_text("word20 end.")
    expect_rest(page)
    expect_steady(page, 52)


def test_a_path_without_a_page_is_answered_by_a_page_that_says_so(visit: Visit, server: Server) -> None:
    page = visit()
    answer = page.goto(f"{server.url}/nothing")
    assert answer is not None
    assert answer.status == 404
    expect(page.get_by_role("heading")).to_have_text("There is no such page")
    page.get_by_role("link", name="the first page").click()
    expect(page.get_by_text("What would you like to talk about?")).to_be_visible()
    for path in ("/nothing", "/_stcore", "/static/../nothing", "/talk/x"):
        missing = page.request.get(f"{server.url}{path}", headers={"Accept": "application/json"})
        assert (missing.status, missing.json()["code"]) == (404, "not_found"), path
