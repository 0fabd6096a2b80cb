"""T7, T8: what was said is kept as it was said, and the brain has all of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import roost
from tests.conftest import QUICK, everything, settled
from tests.properties.conftest import ANY_TEXT, USER, Home

FACTS = st.dictionaries(st.sampled_from(["name", "city", "colour", "bird"]), ANY_TEXT, min_size=1)


@given(FACTS, st.data())
def test_what_was_said_earlier_is_there_when_the_brain_needs_it_later(
    memory: roost.AgentService, facts: dict[str, str], data: st.DataObject
) -> None:
    talk = memory.create_talk_session(USER, profile="memory")
    for name, value in facts.items():
        memory.add_message(USER, talk, f"{name} = {value}")
        assert settled(memory, USER, talk)[-1].content == f"noted {name}"
    for name in data.draw(st.permutations(["name", "city", "colour", "bird"])):
        memory.add_message(USER, talk, f"{name}?")
        expected = facts.get(name, f"what is your {name}?")
        assert settled(memory, USER, talk)[-1].content == expected


@given(st.lists(st.tuples(ANY_TEXT, st.sampled_from(["answer", "fail", "stop", "rollback"])), max_size=5))
def test_every_stored_message_but_the_withdrawn_is_in_the_brains_context(
    home: Home, turns: list[tuple[str, str]]
) -> None:
    talk = home.talk()
    for question, end in turns:
        _one_turn(home, talk, question, end)
    before = settled(home.service, USER, talk)
    asked = home.say(talk, "what do you know?")
    settled(home.service, USER, talk)
    heard = home.puppet.turns[talk][-1]
    assert heard.messages == (asked,)
    assert heard.history == tuple(m for m in before if m.status != "withdrawn")


def _one_turn(home: Home, talk: str, question: str, end: str) -> None:
    if end == "answer":
        home.say(talk, question)
    elif end == "fail":
        home.puppet.play(talk, "half", ValueError("broken"))
        home.say(talk, question)
    else:
        home.puppet.play(talk, "half", lambda: False)
        home.say(talk, question)
        next(c for c in home.service.stream_messages(USER, talk) if c.message.status == "streaming")
        if end == "stop":
            home.service.stop(USER, talk, wait=5)
        else:
            home.service.add_message(USER, talk, question + "!", busy="rollback")
    settled(home.service, USER, talk)


@given(st.lists(st.tuples(ANY_TEXT, ANY_TEXT), min_size=1, max_size=4), st.lists(st.integers(1, 9), max_size=4))
def test_the_history_stays_as_it_is_however_often_and_however_it_is_read(
    home: Home, turns: list[tuple[str, str]], limits: list[int]
) -> None:
    talk = home.talk()
    for question, answer in turns:
        home.puppet.play(talk, answer)
        home.say(talk, question)
        settled(home.service, USER, talk)
    whole = everything(home.service, USER, talk)
    for limit in limits:
        home.read(talk, limit=limit)
        home.service.get_messages(USER, talk, before=limit, limit=limit)
        list(home.service.stream_messages(USER, talk))
        home.service.rename(USER, talk, f"read by {limit}")
    assert everything(home.service, USER, talk) == whole
    assert [(m.sender, m.content) for m in whole] == [
        (who, text) for turn in turns for who, text in zip(("user", "agent"), turn, strict=True)
    ]


@given(st.lists(st.lists(ANY_TEXT, min_size=1, max_size=3), min_size=1, max_size=2))
def test_the_history_is_the_same_after_every_reopening(
    tmp_path_factory: pytest.TempPathFactory, sittings: list[list[str]]
) -> None:
    url = f"sqlite:///{tmp_path_factory.mktemp('reopened') / 'roost.db'}"
    with roost.open(url, limits=QUICK) as first:
        talk = first.create_talk_session(USER, profile="echo", title="the same")
        before = everything(first, USER, talk)
    for questions in sittings:
        with roost.open(url, limits=QUICK) as service:
            assert everything(service, USER, talk) == before
            assert [t.talk_session_id for t in service.list_sessions(USER)] == [talk]
            for question in questions:
                service.add_message(USER, talk, question)
                settled(service, USER, talk)
            before = everything(service, USER, talk)
    said = [text for questions in sittings for text in questions for _ in (0, 1)]
    assert [m.content for m in before] == said


@given(st.lists(ANY_TEXT, min_size=1, max_size=4), st.sampled_from(["interrupt", "queue", "steer", "rollback"]))
def test_one_session_id_names_the_talk_everywhere_from_beginning_to_end(
    home: Home, questions: list[str], busy: str
) -> None:
    talk = home.talk()
    for question in questions:
        home.service.add_message(USER, talk, question, busy=busy)
        home.service.rename(USER, talk, "renamed")
        home.service.configure(USER, talk, busy=busy)
        settled(home.service, USER, talk)
    heard = home.puppet.turns[talk]
    assert {h.talk for h in heard} == {talk}
    assert len({h.run for h in heard}) == len(heard)
    assert home.service.get_session(USER, talk).talk_session_id == talk
    assert [t.talk_session_id for t in home.service.list_sessions(USER)].count(talk) == 1


@given(st.lists(ANY_TEXT, min_size=2, max_size=12), st.sampled_from(["interrupt", "queue", "steer", "rollback"]))
def test_messages_are_kept_and_heard_in_the_order_in_which_they_were_said(
    home: Home, questions: list[str], busy: str
) -> None:
    talk = home.talk(busy)
    numbers = [home.say(talk, question).seq for question in questions]
    whole = settled(home.service, USER, talk)
    assert numbers == sorted(numbers)
    assert [m.content for m in whole if m.sender == "user"] == questions
    assert [m.seq for m in whole] == list(range(1, len(whole) + 1))
    assert [m.created for m in whole] == sorted(m.created for m in whole)
    last = home.puppet.turns[talk][-1]
    heard = [m for m in (*last.history, *last.messages) if m.sender == "user"]
    assert [m.content for m in heard] == questions


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[roost.AgentService]:
    """A service with a scripted brain that answers from what was said, and asks for what it was not told."""

    async def brain(turn: roost.Turn) -> AsyncIterator[str]:
        name, equals, _ = turn.text.partition(" = ")
        known = dict(m.content.split(" = ", 1) for m in turn.history if " = " in m.content and m.sender == "user")
        yield f"noted {name}" if equals else known.get(turn.text[:-1], f"what is your {turn.text[:-1]}?")

    path: Path = tmp_path_factory.mktemp("memory") / "roost.db"
    service = roost.open(f"sqlite:///{path}", brains={"memory": brain}, limits=QUICK)
    yield service
    service.close()
