"""T2, T7: any text comes back as it was given; what no store keeps alike is refused everywhere alike."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import roost
from tests.conftest import everything, settled
from tests.properties.conftest import ANY_TEXT, USER, Home

SURROGATE = st.characters(categories=["Cs"])
REFUSED = st.one_of(
    st.just(""),
    st.builds(lambda a, b: a + "\0" + b, st.text(), st.text()),
    st.builds(lambda a, s, b: a + s + b, ANY_TEXT, SURROGATE, ANY_TEXT),
    st.sampled_from([7, b"bytes", ["list"]]),
)


@given(ANY_TEXT, ANY_TEXT)
@example("\r\n\t \x0b\x1b[31m", "e\u0301 ≠ é")
@example("\ufeffBOM \ufffe \U0010ffff", "\u202edrawkcab \u200d")
@example("ä" * 524_288, "🐦" * 262_144)
@example("x" * 4 * 1024 * 1024, " ")
@example("'; DROP TABLE messages; --", "<script>alert(1)</script>")
def test_what_is_said_comes_back_identically(home: Home, question: str, answer: str) -> None:
    talk = home.talk()
    home.puppet.play(talk, answer[:3], answer[3:])
    assert home.say(talk, question).content == question
    whole = settled(home.service, USER, talk)
    assert [m.content for m in whole] == [question, answer]
    stored = home.service.get_messages(USER, talk, before=3)
    assert [m.content for m in stored.messages] == [question, answer]
    assert home.puppet.turns[talk][-1].text == question


@given(REFUSED)
@example("x" * (4 * 1024 * 1024 + 1))
def test_what_cannot_be_kept_is_refused_everywhere_alike_and_changes_nothing(home: Home, bad: str) -> None:
    talk = home.talk()
    before = home.service.get_session(USER, talk)
    calls: list[Callable[[], object]] = [
        lambda: home.say(talk, bad),
        lambda: home.service.add_message(bad, talk, "hello"),
        lambda: home.service.add_message(USER, bad, "hello"),
        lambda: home.service.rename(USER, talk, bad),
        lambda: home.service.create_talk_session(bad, profile="puppet"),
        lambda: home.service.create_talk_session(USER, title=bad),
        lambda: home.service.add_message(USER, talk, "hello", key=bad),
    ]
    for call in calls:
        with pytest.raises(roost.Invalid, match=r"must|too long|not known"):
            call()
    assert home.service.get_session(USER, talk) == before
    assert everything(home.service, USER, talk) == ()


@given(st.lists(st.one_of(st.just("\0"), SURROGATE, ANY_TEXT), min_size=1, max_size=5))
def test_any_answer_is_stored_as_it_was_shown(home: Home, chunks: list[str]) -> None:
    talk = home.talk()
    home.puppet.play(talk, *chunks)
    home.say(talk, "go")
    shown = [c.message.content for c in home.service.stream_messages(USER, talk) if c.message.seq == 2][-1]
    stored = home.service.get_messages(USER, talk, before=3).messages[-1]
    assert stored.content == shown
    assert stored.status == "complete"
    assert len(shown.replace("\ufffd", "")) <= len("".join(chunks))
    assert "\0" not in shown
    assert shown.encode().decode() == shown


@given(st.lists(st.tuples(st.sampled_from("abc"), ANY_TEXT), min_size=1, max_size=8))
def test_one_key_is_one_message_and_another_content_a_conflict(home: Home, sent: list[tuple[str, str]]) -> None:
    talk, kept = home.talk("queue"), dict[str, roost.Message]()
    for key, text in sent:
        if key in kept and kept[key].content != text:
            with pytest.raises(roost.Conflict, match=key):
                home.service.add_message(USER, talk, text, key=key)
            continue
        message = home.service.add_message(USER, talk, text, key=key)
        assert message == kept.setdefault(key, message)
    users = [m for m in settled(home.service, USER, talk) if m.sender == "user"]
    assert users == list(kept.values())


@given(ANY_TEXT)
def test_a_repeated_message_stops_no_run(home: Home, text: str) -> None:
    talk, runs = home.talk(), home.puppet.turns
    home.puppet.play(talk, "one", lambda: len(repeats) == 3, "two")
    repeats: list[roost.Message] = []
    first = home.service.add_message(USER, talk, text, key="k")
    next(c for c in home.service.stream_messages(USER, talk) if c.message.sender == "agent")
    for busy in ("interrupt", "rollback", "reject"):
        repeats.append(home.service.add_message(USER, talk, text, key="k", busy=busy))
    assert repeats == [first] * 3
    assert [(m.content, m.status) for m in settled(home.service, USER, talk)][1:] == [("onetwo", "complete")]
    assert len(runs[talk]) == 1
