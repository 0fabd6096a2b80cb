from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import roost
from roost.brains.guide import guide
from roost.brains.guide.script import QUESTION, TOPICS, GuideMemory, Topic, answer
from roost.testing import Simulation

Ask = Callable[[roost.AgentService, str, str], roost.Message]
Open = Callable[[Path], roost.AgentService]

NAMES = st.from_regex(r"[A-Z][a-zà-öø-þ]{1,15}", fullmatch=True)
SAYINGS = st.sampled_from(
    ["hello", "help", "markdown", "fail", "what is my name?", "tell me more about it", "long", "no", "thanks"]
    + [f"what about {topic.name}?" for topic in TOPICS]
)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=80)


def answers(service: roost.AgentService, talk: str) -> list[str]:
    return [m.content for m in service.get_messages("ann", talk).messages if m.sender == "agent"]


def test_the_first_answer_greets_and_says_what_roost_is_and_later_ones_do_not(
    shared_service: roost.AgentService, ask: Ask
) -> None:
    talk = shared_service.create_talk_session("ann", profile="guide")
    first, second = ask(shared_service, talk, "hello"), ask(shared_service, talk, "hello")
    assert "I am the guide" in first.content
    assert "Roost is a home for agents" in first.content
    assert "I am the guide" not in second.content


@given(st.lists(SAYINGS | TEXTS, min_size=1, max_size=6))
def test_it_greets_once_whatever_is_said(shared_service: roost.AgentService, ask: Ask, said: list[str]) -> None:
    talk = shared_service.create_talk_session("ann", profile="guide")
    for text in said:
        ask(shared_service, talk, text)
    given_answers = answers(shared_service, talk)
    assert len(given_answers) == len(said)
    assert ["I am the guide" in answer for answer in given_answers] == [True] + [False] * (len(said) - 1)


@given(before=st.lists(SAYINGS | TEXTS, max_size=3), name=NAMES, after=st.lists(SAYINGS | TEXTS, max_size=3))
def test_it_asks_the_name_at_most_once_and_never_when_it_knows_it(
    shared_service: roost.AgentService, ask: Ask, before: list[str], name: str, after: list[str]
) -> None:
    talk = shared_service.create_talk_session("ann", profile="guide")
    for text in [*before, f"my name is {name}", *after]:
        ask(shared_service, talk, text)
    asked = [QUESTION in answer for answer in answers(shared_service, talk)]
    assert sum(asked) <= 1
    assert not any(asked[len(before) :])


@given(name=NAMES, between=st.lists(SAYINGS, max_size=4))
def test_a_name_is_remembered(shared_service: roost.AgentService, ask: Ask, name: str, between: list[str]) -> None:
    talk = shared_service.create_talk_session("ann", profile="guide")
    assert name in ask(shared_service, talk, f"Hello, my name is {name}.").content
    for text in between:
        ask(shared_service, talk, text)
    assert ask(shared_service, talk, "What is my name?").content == f"Your name is {name}."


@pytest.mark.parametrize("said", ["Ann", "ann", "I'm Ann", "it is Ann.", "My name is Ann, hello!", "call me Ann"])
def test_a_name_given_after_the_question_is_understood(shared_service: roost.AgentService, ask: Ask, said: str) -> None:
    talk = shared_service.create_talk_session("ann", profile="guide")
    assert ask(shared_service, talk, "hello").content.endswith(QUESTION)
    assert "Nice to meet you, Ann!" in ask(shared_service, talk, said).content
    assert "Good to see you, Ann" in ask(shared_service, talk, "good morning").content


@pytest.mark.parametrize("said", ["no", "why?", "help", "hello again", "what is this thing", "I am not telling"])
def test_what_is_no_name_is_not_taken_for_one(shared_service: roost.AgentService, ask: Ask, said: str) -> None:
    talk = shared_service.create_talk_session("ann", profile="guide")
    ask(shared_service, talk, "hello")
    ask(shared_service, talk, said)
    assert ask(shared_service, talk, "what is my name?").content == "You have not told me your name yet."


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: str(topic.name))
def test_it_refers_to_the_topic_last_talked_about(shared_service: roost.AgentService, ask: Ask, topic: Topic) -> None:
    talk = shared_service.create_talk_session("ann", profile="guide")
    for other in TOPICS:
        ask(shared_service, talk, f"what about {other.name}?")
    assert topic.first in ask(shared_service, talk, f"and {topic.name}?").content
    ask(shared_service, talk, "help")
    assert topic.more in ask(shared_service, talk, "Tell me more about it!").content


def test_it_without_a_topic_is_asked_back(shared_service: roost.AgentService, ask: Ask) -> None:
    talk = shared_service.create_talk_session("ann", profile="guide")
    assert "More about what?" in ask(shared_service, talk, "tell me more about it").content


def test_name_and_topic_are_known_after_a_restart(file: Path, opened: Open, ask: Ask) -> None:
    with opened(file) as service:
        talk = service.create_talk_session("ann", profile="guide")
        ask(service, talk, "my name is Ann")
        ask(service, talk, "what about brains?")
    with opened(file) as service:
        assert "More about brains" in ask(service, talk, "tell me more about it").content
        assert ask(service, talk, "what is my name?").content == "Your name is Ann."
        assert "I am the guide" not in ask(service, talk, "hello").content


def test_an_interrupted_count_keeps_what_was_counted(shared_service: roost.AgentService) -> None:
    talk = shared_service.create_talk_session("ann", profile="unhurried")
    shared_service.add_message("ann", talk, "count")
    for change in shared_service.stream_messages("ann", talk):
        if " 3," in change.message.content:
            break
    shared_service.add_message("ann", talk, "my name is Ann")
    *_, last = shared_service.stream_messages("ann", talk)
    _, count, _, answer = shared_service.get_messages("ann", talk).messages
    assert (count.status, answer.status) == ("interrupted", "complete")
    assert "1, 2, 3," in count.content
    assert "100" not in count.content
    assert answer.content.startswith("I was interrupted")
    assert last.message == answer


def test_a_count_that_is_left_alone_reaches_100(shared_service: roost.AgentService, ask: Ask) -> None:
    talk = shared_service.create_talk_session("ann", profile="guide")
    counted = ask(shared_service, talk, "count").content
    assert counted.endswith("98, 99, 100.")


def test_messages_that_wait_together_are_all_answered_but_shows_only_last(shared_service: roost.AgentService) -> None:
    talk = shared_service.create_talk_session("ann", profile="unhurried", busy="queue")
    shared_service.add_message("ann", talk, "help")
    for said in ["count", "my name is Ann", "what is my name?"]:
        shared_service.add_message("ann", talk, said)
    *_, last = shared_service.stream_messages("ann", talk)
    assert "Nice to meet you, Ann!" in last.message.content
    assert last.message.content.endswith("Your name is Ann.")
    assert "98, 99" not in last.message.content


def test_a_failure_is_one_sentence_without_internals_and_the_talk_continues(
    shared_service: roost.AgentService, ask: Ask
) -> None:
    talk = shared_service.create_talk_session("ann", profile="guide")
    failed = ask(shared_service, talk, "fail")
    assert failed.status == "failed"
    assert "I am about to fail" in failed.content
    assert failed.error is not None
    assert "try again" in failed.error
    assert not any(word in failed.error for word in ["RuntimeError", "asked to fail", "Traceback", ".py", "\n"])
    assert ask(shared_service, talk, "hello").status == "complete"


@pytest.mark.parametrize("said", ["help", "Help!", "please help me", "HELP, please"])
def test_commands_may_be_asked_for_politely(shared_service: roost.AgentService, ask: Ask, said: str) -> None:
    talk = shared_service.create_talk_session("ann", profile="guide")
    assert "Here is what you can say" in ask(shared_service, talk, said).content


def test_markdown_has_a_table_and_code(shared_service: roost.AgentService, ask: Ask) -> None:
    talk = shared_service.create_talk_session("ann", profile="guide")
    content = ask(shared_service, talk, "Markdown!").content
    assert "\n| --- | --- |\n" in content
    assert "\n```python\n" in content
    assert content.count("```") == 2


def test_the_long_answer_is_long_and_help_names_every_command(shared_service: roost.AgentService, ask: Ask) -> None:
    talk = shared_service.create_talk_session("ann", profile="guide")
    assert len(ask(shared_service, talk, "long").content) > 2_000
    helped = ask(shared_service, talk, "help").content
    assert all(f"**{command}**" in helped for command in ["count", "long", "markdown", "fail"])


@given(st.text("qxzj ", min_size=1, max_size=40))
def test_what_it_does_not_understand_is_mentioned_with_something_to_try(
    shared_service: roost.AgentService, ask: Ask, said: str
) -> None:
    talk = shared_service.create_talk_session("ann", profile="guide")
    answer = ask(shared_service, talk, said).content
    assert f"“{' '.join(said.split()) or '…'}”" in answer
    assert "Try **" in answer


def test_at_its_usual_pace_it_counts_for_half_a_minute(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path)
    service = simulation.start({"guide": guide})

    async def count() -> list[roost.Change]:
        talk = await service.create_talk_session("ann", profile="guide")
        await service.add_message("ann", talk, "count")
        changes = [change async for change in service.stream_messages("ann", talk)]
        await service.close()
        return changes

    began = simulation.clock.monotonic()
    changes = simulation.run(count())
    assert len(changes) > 100
    assert changes[-1].message.content.endswith("98, 99, 100.")
    assert 30 <= simulation.clock.monotonic() - began <= 35


def test_nothing_takes_it_long_to_understand() -> None:
    before = time.process_time()
    answer("my name " * 40_000, GuideMemory(), 0)
    assert time.process_time() - before < 5, "it was a minute"
