"""T9, S7: a failure is one plain sentence for users, is kept in the log, and harms nothing else."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import roost
from tests.conftest import everything, settled
from tests.properties.conftest import ANY_TEXT, USER, Home

SECRET = "sk-secret-xyzzy /home/ann/brain.py self.api_key"


class VerySpecialError(Exception):
    """A name that no person should have to read."""


ERRORS: list[Callable[[], BaseException]] = [
    lambda: VerySpecialError(SECRET),
    lambda: ValueError(SECRET),
    lambda: KeyError(SECRET),
    lambda: TimeoutError(SECRET),
    lambda: ConnectionError(SECRET),
    lambda: MemoryError(SECRET),
    lambda: RecursionError(SECRET),
    lambda: SystemExit(SECRET),
    lambda: KeyboardInterrupt(SECRET),
    lambda: UnicodeDecodeError("utf-8", b"sk-secret", 0, 1, SECRET),
    lambda: roost.BrainFailed(SECRET, kind="rate_limit"),
    lambda: roost.BrainFailed(SECRET, kind="no such kind"),
    lambda: roost.NotFound(SECRET),
]
FAILING = st.tuples(ANY_TEXT, st.lists(ANY_TEXT, max_size=3), st.sampled_from(ERRORS))
ONE_SENTENCE = re.compile(r"[A-Z][^.!?\n]*; [^.!?\n]*\(reference [0-9A-Z]{8}\)\.")


def _fail(home: Home, talk: str, turn: tuple[str, list[str], Callable[[], BaseException]]) -> roost.Message:
    question, chunks, error = turn
    home.puppet.play(talk, *chunks, error())
    home.say(talk, question)
    return settled(home.service, USER, talk)[-1]


@given(FAILING)
def test_an_error_while_streaming_keeps_the_partial_answer_and_is_one_sentence(
    home: Home, turn: tuple[str, list[str], Callable[[], BaseException]]
) -> None:
    talk = home.talk()
    answer = _fail(home, talk, turn)
    assert (answer.seq, answer.sender, answer.status) == (2, "agent", "failed")
    assert answer.content == "".join(turn[1])
    assert answer.error is not None
    assert ONE_SENTENCE.fullmatch(answer.error), answer.error
    assert re.search(r"try again|ask|wait|choose|check", answer.error)


@given(FAILING)
def test_nothing_a_user_reads_shows_the_inside(
    home: Home, turn: tuple[str, list[str], Callable[[], BaseException]]
) -> None:
    talk = home.talk()
    answer = _fail(home, talk, ("what happened?", [], turn[2]))
    told = f"{answer.content} {answer.error} {home.service.get_session(USER, talk)}"
    for inside in (
        "Error",
        "Exception",
        "Traceback",
        "secret",
        "xyzzy",
        "brain.py",
        "/",
        "self",
        "api_key",
        "SystemExit",
    ):
        assert inside not in told.replace("Interrupt", "").replace("BusyPolicy", "").replace("tzinfo", ""), inside


@given(st.lists(FAILING, min_size=1, max_size=4), ANY_TEXT)
def test_after_errors_the_history_is_whole_and_the_next_message_works(
    home: Home, turns: list[tuple[str, list[str], Callable[[], BaseException]]], question: str
) -> None:
    talk = home.talk()
    before: tuple[roost.Message, ...] = ()
    for turn in turns:
        _fail(home, talk, turn)
        whole = everything(home.service, USER, talk)
        assert whole[: len(before)] == before
        assert [m.content for m in whole[len(before) :]] == [turn[0], "".join(turn[1])]
        before = whole
    home.say(talk, question)
    whole = settled(home.service, USER, talk)
    assert whole[:-2] == before
    assert (whole[-1].content, whole[-1].status) == (f"heard {question}", "complete")
    assert home.puppet.turns[talk][-1].history == before


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(FAILING)
def test_each_logged_error_has_time_session_run_excerpt_type_and_the_reference_people_read(
    home: Home, caplog: pytest.LogCaptureFixture, turn: tuple[str, list[str], Callable[[], BaseException]]
) -> None:
    talk = home.talk()
    caplog.clear()
    answer = _fail(home, talk, turn)
    [record] = [r for r in caplog.records if r.levelno >= logging.ERROR and getattr(r, "session", "") == talk]
    facts = vars(record)
    assert record.created > 0
    assert facts["run"] == answer.run_id == home.puppet.turns[talk][-1].run
    assert facts["excerpt"]
    assert turn[0].startswith(facts["excerpt"])
    raised = turn[2]()
    stands_for = (SystemExit, KeyboardInterrupt)
    assert facts["error_type"] == ("BrainFailed" if isinstance(raised, stands_for) else type(raised).__name__)
    assert f"(reference {facts['reference']})" in (answer.error or "")
    assert record.exc_info is not None


SERVICE_CALLS: dict[str, Callable[[roost.AgentService, str, str], object]] = {
    "get_session": lambda s, user, talk: s.get_session(user, talk),
    "rename": lambda s, user, talk: s.rename(user, talk, "mine now"),
    "configure": lambda s, user, talk: s.configure(user, talk, busy="queue"),
    "delete": lambda s, user, talk: s.delete(user, talk),
    "add_message": lambda s, user, talk: s.add_message(user, talk, "hello"),
    "get_messages": lambda s, user, talk: s.get_messages(user, talk),
    "stream_messages": lambda s, user, talk: list(s.stream_messages(user, talk)),
    "stop": lambda s, user, talk: s.stop(user, talk),
    "list_sessions": lambda s, user, talk: s.list_sessions(user, before=talk),
}


@given(st.sampled_from(sorted(SERVICE_CALLS)), st.sampled_from(["bob", "Ann", "ann ", "root"]), st.booleans())
def test_someone_elses_talk_and_one_that_never_was_are_answered_alike_and_nothing_changes(
    home: Home, method: str, stranger: str, deleted: bool
) -> None:
    talk = home.talk()
    home.say(talk, "mine")
    whole, before = settled(home.service, USER, talk), home.service.get_session(USER, talk)
    gone = home.talk()
    if deleted:
        home.service.delete(USER, gone)
    told = []
    for user, talk_id in [(stranger, talk), (stranger, "talk_never"), (USER if deleted else stranger, gone)]:
        with pytest.raises(roost.NotFound, match="there is no such talk") as refused:
            SERVICE_CALLS[method](home.service, user, talk_id)
        told.append(str(refused.value))
    assert len(set(told)) == 1
    assert everything(home.service, USER, talk) == whole
    assert home.service.get_session(USER, talk) == before


BAD_CALLS: dict[str, Callable[[Home, str], object]] = {
    "an unknown profile": lambda h, t: h.service.create_talk_session(USER, profile="nobody"),
    "an unknown policy": lambda h, t: h.service.add_message(USER, t, "hello", busy="rudely"),
    "a policy of another kind": lambda h, t: h.service.configure(USER, t, busy="7"),
    "a foreign cursor": lambda h, t: h.read(t, "zzzz.1.0.0"),
    "a broken cursor": lambda h, t: h.read(t, "nonsense"),
    "an empty cursor": lambda h, t: h.read(t, ""),
    "no messages": lambda h, t: h.read(t, limit=0),
    "too many messages": lambda h, t: h.read(t, limit=1_001),
    "before nothing": lambda h, t: h.service.get_messages(USER, t, before=0),
    "both ways": lambda h, t: h.service.get_messages(USER, t, after=h.read(t).cursor, before=1),
    "too hot": lambda h, t: h.service.create_talk_session(USER, temperature=3.0),
    "an unknown option": lambda h, t: h.service.configure(USER, t, options={"speed": 9}),
}


@given(st.sampled_from(sorted(BAD_CALLS)), st.integers(0, 2))
def test_a_bad_call_says_what_is_expected_and_changes_nothing(home: Home, what: str, turns: int) -> None:
    talk = home.talk()
    for number in range(turns):
        home.say(talk, f"message {number}")
        settled(home.service, USER, talk)
    before = (everything(home.service, USER, talk), home.service.get_session(USER, talk))
    with pytest.raises(roost.Invalid, match=r"use |must be|give "):
        BAD_CALLS[what](home, talk)
    assert (everything(home.service, USER, talk), home.service.get_session(USER, talk)) == before
    home.say(talk, "still here")
    assert settled(home.service, USER, talk)[-1].content == "heard still here"
