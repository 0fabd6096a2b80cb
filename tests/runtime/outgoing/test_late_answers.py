"""Late answers: turns of their own kind, which no brain mistakes for a task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.brains.chat.context import prompt
from roost.brains.guide import guide
from roost.brains.scripted import echo, scripted
from roost.core.envelopes.late_answers import LateAnswer, from_body
from roost.demos.brains import planner
from roost.ports import AsyncBrain, Profile
from roost.testing import simulated
from tests.runtime.agents.test_agents import done
from tests.runtime.conftest import QUICK, becomes
from tests.runtime.outgoing.test_requests import pair


async def slow(turn: Turn) -> AsyncIterator[str]:
    await asyncio.sleep(2)
    if turn.text == "fail":
        raise ValueError
    yield "the answer"


async def hasty(turn: Turn) -> AsyncIterator[str]:
    """Asks what its task says, without waiting; keeps late answers."""
    if turn.kind == "answer":
        if turn.state.get("fails"):
            raise ValueError
        turn.state["late"] = [turn.sender, turn.text, turn.answer.question, turn.answer.error]
        yield f"heard {turn.text}"
        return
    turn.state["fails"] = turn.text == "break"
    try:
        yield await turn.ask("agent:e", turn.text, deadline=1)
    except roost.NoAnswer:
        yield "went on"


BRAINS: dict[str, roost.Brain] = {"hasty": hasty, "slow": slow}


async def late(service: AsyncAgentService, question: str) -> list[str | None]:
    """Return what came of a question whose answer is late."""
    await pair(service, "hasty", "slow", max_attempts=1)
    assert (await done(service, question)).result == "went on"
    state = await becomes(lambda: state_of(service), lambda state: "late" in state)
    return list(state["late"])


async def state_of(service: AsyncAgentService) -> dict[str, list[str | None]]:
    return dict((await service.agents.inspect("ann", "d")).turn_state or {})


def test_a_late_answer_has_its_question_and_its_sender() -> None:
    with simulated(brains=BRAINS, limits=QUICK) as simulation:
        found = simulation.run(late(simulation.service, "well?"))
    assert found == ["agent:ann/e", "the answer", "well?", None]


def test_that_there_is_no_answer_after_all_comes_late_too() -> None:
    with simulated(brains=BRAINS, limits=QUICK) as simulation:
        sender, text, question, error = simulation.run(late(simulation.service, "fail"))
    assert (sender, text, question) == ("agent:ann/e", "", "fail")
    assert error is not None
    assert error.startswith("The agent could not finish because of an internal error")


def test_the_turn_of_a_late_answer_leaves_a_run_that_can_be_replayed() -> None:
    async def story(service: AsyncAgentService) -> tuple[str, str, bool]:
        await late(service, "well?")
        [run] = [one for one in await service.runs.list("ann", agent="d") if one.kind == "answer"]
        replay = await service.runs.replay("ann", run.run_id)
        return run.outcome, replay.text, replay.is_identical

    with simulated(brains=BRAINS, limits=QUICK) as simulation:
        assert simulation.run(story(simulation.service)) == ("done", "heard the answer", True)


def test_a_late_answer_that_cannot_be_handled_is_a_dead_letter_of_its_kind() -> None:
    async def story(service: AsyncAgentService) -> tuple[str, list[str | None]]:
        await pair(service, "hasty", "slow", max_attempts=1)
        await done(service, "break")
        [letter] = await becomes(lambda: service.dead_letters.list("ann", kind="answer"))
        await done(service, "well?")
        await becomes(lambda: state_of(service), lambda state: "late" in state)
        await service.dead_letters.retry("ann", letter.letter_id)
        again = await becomes(lambda: state_of(service), lambda state: state["late"][2] == "break")
        return letter.kind, again["late"]

    with simulated(brains=BRAINS, limits=QUICK) as simulation:
        found = simulation.run(story(simulation.service))
    assert found == ("answer", ["agent:ann/e", "the answer", "break", None])


def turn_of(answer: LateAnswer) -> Turn:
    turn = Turn("answer", answer.text, (), (), Profile("p", "echo"), "ann", "", "run_1", senders=("agent:ann/e",))
    return replace(turn, answer=answer)


@pytest.mark.parametrize("brain", [echo, scripted(["hello"]), guide, planner])
def test_brains_that_follow_a_script_say_nothing_about_it(brain: AsyncBrain) -> None:
    async def say() -> list[str]:
        return [str(chunk) async for chunk in brain(turn_of(LateAnswer("well?", "the answer")))]

    assert asyncio.run(say()) == []


def test_a_model_is_shown_the_question_with_the_late_answer() -> None:
    turn = turn_of(LateAnswer("well?", "the answer"))
    shown = prompt(turn, turn.text)
    assert shown.startswith("Late answer from agent:ann/e")
    assert shown.endswith("Question: well?\n\nAnswer: the answer")
    refused = turn_of(LateAnswer("well?", "", "it was stopped"))
    assert prompt(refused, "").endswith("Question: well?\n\nReason: it was stopped")


def test_what_older_programs_wrote_is_read() -> None:
    assert from_body('{"late": true, "asked": "well?", "error": "no"}') == LateAnswer("well?", "", "no")
