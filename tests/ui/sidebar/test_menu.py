"""The menu of a talk in the list: renaming and deleting, which asks before."""

from __future__ import annotations

import pytest

from tests.ui.conftest import USER, Tab


@pytest.fixture
def talk_id(tab: Tab) -> str:
    """The talk that is open."""
    tab.say("hello")
    tab.settle()
    assert tab.look().talk_id is not None
    return str(tab.talk_id)


def titles(tab: Tab) -> dict[str, str]:
    return {talk.talk_session_id: talk.title for talk in tab.service.list_sessions(USER)}


def save(tab: Tab, title: str) -> Tab:
    tab.app.text_input(key="title").set_value(title)
    return tab.click("FormSubmitter:rename-Save")


def test_a_talk_gets_the_title_that_is_saved(tab: Tab, talk_id: str) -> None:
    save(tab.choose(f"menu_{talk_id}", "Rename"), " A title ")
    assert titles(tab)[talk_id] == "A title"
    assert not tab.has("FormSubmitter:rename-Save")


@pytest.mark.parametrize("title", ["", "   "])
def test_an_empty_title_is_refused_in_words(tab: Tab, talk_id: str, title: str) -> None:
    save(tab.choose(f"menu_{talk_id}", "Rename"), title)
    assert [error.value for error in tab.app.error] == ["The title must not be empty\\."]
    assert titles(tab)[talk_id] == "hello"
    save(tab, "A title")
    assert titles(tab)[talk_id] == "A title"


def test_a_question_stays_open_when_the_page_is_drawn_again(tab: Tab, talk_id: str) -> None:
    tab.choose(f"menu_{talk_id}", "Delete")
    assert tab.look().has("delete_really")
    tab.click("delete_not")
    assert not tab.has("delete_really")
    assert talk_id in titles(tab)


def test_the_open_talk_is_deleted_after_asking_and_leaves_a_new_one(tab: Tab, talk_id: str) -> None:
    tab.choose(f"menu_{talk_id}", "Delete").click("delete_really")
    assert talk_id not in titles(tab)
    assert tab.talk_id is None
    assert tab.shown == []
    assert tab.notices == []


def test_another_talk_is_deleted_without_leaving_the_open_one(tab: Tab, talk_id: str) -> None:
    tab.click("new_talk").say("stays")
    tab.settle()
    stays = tab.look().talk_id
    tab.choose(f"menu_{talk_id}", "Delete").click("delete_really")
    assert talk_id not in titles(tab)
    assert tab.talk_id == stays
    assert tab.shown[0] == ("user", "stays")


@pytest.mark.parametrize("option", ["Rename", "Delete"])
def test_a_talk_that_another_tab_deleted_meanwhile_is_not_asked_about_any_more(
    tab: Tab, talk_id: str, option: str
) -> None:
    tab.choose(f"menu_{talk_id}", option)
    tab.service.delete(USER, talk_id)
    tab.look()
    assert not tab.has("delete_really")
    assert not tab.has("FormSubmitter:rename-Save")
    assert "no longer exists" in tab.notices[0]
