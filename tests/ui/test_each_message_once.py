"""Each message is on the page exactly once, in order, as it was said, whatever is done in between."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import roost
from tests.ui.conftest import USER, Tab

TYPED = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=60)
WORDS = st.one_of(
    TYPED.filter(str.strip),
    st.sampled_from(["hold", "fail", "![x](http://a.example/b)", ":red[x] $y$", "<b>", "  in\n  dented\n"]),
)
ACTS = st.lists(
    st.one_of(
        WORDS.map(lambda words: ("say", words)),
        st.sampled_from([("look", ""), ("stop", ""), ("leave and return", ""), ("rename", ""), ("second tab", "")]),
    ),
    min_size=1,
    max_size=5,
)


def read(tab: Tab) -> list[tuple[str, str]]:
    """Return the messages of the service, as the page is to show them."""
    return [(message.sender, message.content) for message in tab.settle()]


def expect_whole(tab: Tab) -> None:
    """Check that the page, when nothing runs, shows what the service has: each message once, in order."""
    assert tab.talk_id is not None
    tab.service.stop(USER, tab.talk_id, wait=5)
    stored = read(tab)
    assert tab.look().shown == stored
    assert tab.look().shown == stored


@pytest.fixture(scope="module")
def tabs(service: roost.AgentService) -> tuple[Tab, Tab]:
    """Two tabs of one person; opening new ones for each example would take most of the time."""
    return Tab(service=service).look(), Tab(service=service).look()


@settings(max_examples=12)
@given(said=st.lists(WORDS, min_size=1, max_size=3))
def test_each_message_is_shown_once_over_reruns(tabs: tuple[Tab, Tab], said: list[str]) -> None:
    tab = tabs[0].click("new_talk")
    for words in said:
        tab.say(words)
    expect_whole(tab)
    asked = [text for who, text in tab.shown if who == "user"]
    assert asked == said


@settings(max_examples=15)
@given(acts=ACTS)
def test_the_history_stays_whole_whatever_is_clicked(tabs: tuple[Tab, Tab], acts: list[tuple[str, str]]) -> None:
    tab, other = tabs
    tab.click("new_talk").say("first")
    talk_id = tab.talk_id
    assert talk_id is not None
    asked = ["first"]
    for act, words in acts:
        do(tab, other, act, words, talk_id)
        asked += [words] if act == "say" else []
        assert [said for who, said in tab.shown if who == "user"] == asked
    expect_whole(tab)
    assert other.open(talk_id).shown == tab.shown


def do(tab: Tab, other: Tab, act: str, words: str, talk_id: str) -> None:
    match act:
        case "say":
            tab.say(words)
        case "stop" if tab.input["running"]:
            tab.stop()
        case "leave and return":
            tab.click("new_talk")
            assert tab.shown == []
            tab.open(talk_id)
        case "rename":
            tab.service.rename(USER, talk_id, "Another title")
        case "second tab":
            other.open(talk_id)


@pytest.fixture(scope="module")
def talks(service: roost.AgentService) -> dict[int, str]:
    """Return talks with this number of messages."""
    held = {}
    for count in (1, 49, 50, 51, 99, 100, 101, 130):
        held[count] = service.create_talk_session(USER, busy="collect")
        for number in range(count):
            service.add_message(USER, held[count], f"message {number}")
        service.stop(USER, held[count], wait=5)
    return held


@given(count=st.sampled_from([1, 49, 50, 51, 99, 100, 101, 130]), pages=st.integers(0, 3))
def test_older_messages_come_on_demand_and_none_is_missing(
    tabs: tuple[Tab, Tab], talks: dict[int, str], count: int, pages: int
) -> None:
    tab = tabs[0].click("new_talk").open(talks[count])
    for _ in range(pages):
        if tab.listed["more"]:
            tab.show_older()
    everything = read(tab)
    assert len(everything) == count
    assert tab.shown == everything[-50 * (pages + 1) :]
    assert tab.listed["more"] == (count > 50 * (pages + 1))
