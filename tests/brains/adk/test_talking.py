"""B2: an agent of the ADK in a talk. What people see and what the agent is shown are the same."""

from __future__ import annotations

import threading

import pytest

import roost
from roost.brains.adk import Adk
from tests.brains.adk import models
from tests.conftest import Open, eventually, settled


def opened(service: Open) -> tuple[roost.AgentService, str]:
    one = service({"helper": Adk(models.agent())})
    return one, one.create_talk_session("ann", profile="helper")


def told(messages: tuple[roost.Message, ...]) -> list[tuple[str, str]]:
    return [(str(m.status), m.content) for m in messages]


def ask(service: roost.AgentService, talk: str, text: str) -> str:
    service.add_message("ann", talk, text)
    return settled(service, "ann", talk)[-1].content


def is_saying(service: roost.AgentService, talk: str, word: str) -> bool:
    """Return whether the agent has said that by now, aloud or beside its answer."""
    last = service.get_messages("ann", talk).messages[-1]
    return last.sender == "agent" and word in last.content + "".join(note.text for note in last.notes)


def test_it_answers_word_by_word_and_knows_what_was_said(service: Open, shown: list[list[str]]) -> None:
    one, talk = opened(service)
    one.add_message("ann", talk, "hello there")
    pieces = [change.text for change in one.stream_messages("ann", talk) if change.message.sender == "agent"]
    assert "".join(pieces) == "you said hello there"
    assert ask(one, talk, "again") == "you said again"
    assert shown[-1] == ["user: hello there", "model: you said hello there", "user: again"]


def test_a_tool_is_called_and_stays_in_the_history(service: Open, shown: list[list[str]]) -> None:
    one, talk = opened(service)
    assert ask(one, talk, "look then call quick foo") == "look\n\nthe tool says quick foo"
    ask(one, talk, "thanks")
    assert shown[-1] == [
        "user: look then call quick foo",
        "model: look | call quick",
        "user: result {'result': 'quick foo'}",
        "model: the tool says quick foo",
        "user: thanks",
    ]


def test_the_history_survives_a_restart(service: Open, shown: list[list[str]]) -> None:
    one, talk = opened(service)
    ask(one, talk, "call quick foo")
    before = shown[-1]
    one.close()
    one = service({"helper": Adk(models.agent())})
    ask(one, talk, "still there?")
    assert shown[-1] == [*before, "model: the tool says quick foo", "user: still there?"]


def test_an_answer_that_was_stopped_is_kept_as_far_as_it_was_said(service: Open, shown: list[list[str]]) -> None:
    one, talk = opened(service)
    one.add_message("ann", talk, "please wait here")
    eventually(lambda: is_saying(one, talk, "wait"))
    receipt = one.stop("ann", talk, wait=5)
    assert receipt.quiesced is not None
    assert not receipt.abandoned
    ask(one, talk, "go on")
    assert shown[-1] == [
        "user: please wait here",
        "model: you said please wait  | [this answer was interrupted here]",
        "user: go on",
    ]


@pytest.mark.parametrize("words", ["", "look then "])
def test_a_call_that_was_stopped_has_a_result_that_says_so(service: Open, shown: list[list[str]], words: str) -> None:
    one, talk = opened(service)
    one.add_message("ann", talk, f"{words}call slow")
    eventually(lambda: is_saying(one, talk, "slow"))
    one.stop("ann", talk, wait=5)
    one.close()
    one = service({"helper": Adk(models.agent())})
    ask(one, talk, "go on")
    first, call, result, *_, last = shown[-1]
    assert (first, last) == (f"user: {words}call slow", "user: go on")
    assert call == ("model: look | call slow" if words else "model: call slow")
    assert "interrupted" in result


def test_what_was_withdrawn_is_not_in_the_history(service: Open, shown: list[list[str]]) -> None:
    one, talk = opened(service)
    one.add_message("ann", talk, "please wait here")
    eventually(lambda: is_saying(one, talk, "wait"))
    one.add_message("ann", talk, "no, that", busy="rollback")
    assert settled(one, "ann", talk)[-1].content == "you said no, that"
    ask(one, talk, "and now?")
    assert shown[-1] == ["user: please wait here", "user: no, that", "model: you said no, that", "user: and now?"]


def test_an_interrupted_call_stays_in_the_history_though_nothing_was_said(
    service: Open, shown: list[list[str]]
) -> None:
    one, talk = opened(service)
    one.add_message("ann", talk, "call slow")
    eventually(lambda: is_saying(one, talk, "slow"))
    assert ask(one, talk, "never mind") == "you said never mind"
    first, call, result, last = shown[-1]
    assert (first, call, last) == ("user: call slow", "model: call slow", "user: never mind")
    assert "interrupted" in result


def test_it_is_steered_at_the_next_call_of_the_model(service: Open, shown: list[list[str]]) -> None:
    may_end = threading.Event()

    def wait(text: str) -> str:
        """Wait."""
        return "over" if may_end.wait(20) else "never"

    one = service({"helper": Adk(models.agent(wait))})
    talk = one.create_talk_session("ann", profile="helper", busy="steer")
    one.add_message("ann", talk, "look then call wait x")
    eventually(lambda: is_saying(one, talk, "wait"))
    one.add_message("ann", talk, "south")
    may_end.set()
    messages = settled(one, "ann", talk)
    assert told(messages)[1:] == [("complete", "look"), ("complete", "south"), ("complete", "you said south")]
    assert len({m.run_id for m in messages if m.sender == "agent"}) == 1, "the same run continues"
    ask(one, talk, "thanks")
    assert shown[-1] == [
        "user: look then call wait x",
        "model: look | call wait",
        "user: result {'result': 'over'}",
        "user: south",
        "model: you said south",
        "user: thanks",
    ]


def test_what_another_profile_has_said_is_known(service: Open, shown: list[list[str]]) -> None:
    one = service({"helper": Adk(models.agent())})
    talk = one.create_talk_session("ann", profile="echo")
    ask(one, talk, "hello")
    one.configure("ann", talk, profile="helper")
    ask(one, talk, "again")
    assert shown[-1] == ["user: hello", "model: hello", "user: again"]


def test_what_the_profile_says_goes_before_what_the_agent_says(service: Open) -> None:
    one = service({"helper": Adk(models.agent())})
    talk = one.create_talk_session("ann", profile="helper", instructions="Rhyme.", temperature=0.5)
    ask(one, talk, "hello")
    assert ("Rhyme." in models.told[-1][0], models.told[-1][1]) == (True, 0.5)


def test_a_failure_is_sorted_and_the_next_message_works(service: Open, shown: list[list[str]]) -> None:
    one, talk = opened(service)
    one.add_message("ann", talk, "now break it")
    failed = settled(one, "ann", talk)[-1]
    assert failed.status == "failed"
    assert "could not be reached" in (failed.error or "")
    assert failed.content == "you said now break "
    ask(one, talk, "better?")
    assert shown[-1] == [
        "user: now break it",
        "model: you said now break  | [this answer failed here]",
        "user: better?",
    ]
