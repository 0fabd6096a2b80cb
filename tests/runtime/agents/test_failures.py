"""M9: when an agent fails, is stopped or deleted, callers and subscribers hear of it at once, and continue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.testing import Simulation, simulated
from tests.runtime.agents.test_agents import done, until
from tests.runtime.conftest import QUICK, World, becomes, ended
from tests.runtime.conftest import until as until_so
from tests.runtime.outgoing.test_requests import pair

heard: list[str] = []


async def holds(turn: Turn) -> AsyncIterator[str]:
    await asyncio.sleep(30)
    yield "the answer"


async def careful(turn: Turn) -> AsyncIterator[str]:
    """Asks, and says how that went; what it gets later it remembers."""
    if turn.kind == "answer":
        turn.state["late"] = [turn.answer.question, turn.text]
        return
    try:
        yield await turn.ask("agent:e", "well?", deadline=600)
    except roost.NoAnswer as error:
        yield str(error)


BRAINS: dict[str, roost.Brain] = {"careful": careful, "holds": holds}


async def begun(service: AsyncAgentService) -> str:
    """A task of d's that waits for e, which is at it."""
    await service.agents.create("ann", "d", profile="careful", max_attempts=60)
    await service.agents.create("ann", "e", profile="holds")
    task = await service.tasks.send("ann", "d", "go")
    await until(service, lambda agent: agent.state == "active", "e")
    return task


@pytest.mark.parametrize("what", ["delete", "stop"])
def test_a_caller_that_waits_for_an_answer_fails_at_once(world: World, what: str) -> None:
    async def story(service: AsyncAgentService) -> roost.Task:
        task = await begun(service)
        await getattr(service.agents, what)("ann", "e")
        return await service.tasks.wait("ann", task, timeout=20)

    told = world(BRAINS, story)
    assert told.result == f"agent:e could not answer: it was {'deleted' if what == 'delete' else 'stopped'}"
    assert told.started is not None
    assert told.ended is not None
    assert (told.ended - told.started).total_seconds() < 15


def test_what_it_says_after_it_was_started_again_comes_late() -> None:
    async def story(service: AsyncAgentService) -> Any:
        task = await begun(service)
        await service.agents.stop("ann", "e")
        await service.tasks.wait("ann", task)
        await service.agents.start("ann", "e")
        await asyncio.sleep(31)
        return (await service.agents.inspect("ann", "d")).turn_state

    with simulated(brains=BRAINS, limits=QUICK) as simulation:
        assert simulation.run(story(simulation.service)) == {"late": ["well?", "the answer"]}


def test_a_restart_keeps_what_is_asked_waiting() -> None:
    async def story(service: AsyncAgentService) -> str | None:
        task = await begun(service)
        await service.agents.restart("ann", "e")
        return (await service.tasks.wait("ann", task)).result

    with simulated(brains=BRAINS, limits=QUICK) as simulation:
        assert simulation.run(story(simulation.service)) == "the answer"


def test_one_that_is_stopped_is_not_asked_and_a_repeated_turn_knows_it(world: World) -> None:
    async def insists(turn: Turn) -> AsyncIterator[str]:
        answers = []
        for _ in range(2):
            try:
                answers.append(await turn.ask("agent:e", "well?", deadline=600))
            except roost.NoAnswer as error:
                answers.append(str(error))
        if turn.attempt == 1:
            heard.append("once")
            while len(heard) < 2:  # noqa: ASYNC110 — until e was started
                await asyncio.sleep(0.01)
            raise ValueError
        yield " and ".join([*answers, await turn.ask("agent:e", "now?")])

    async def answers(turn: Turn) -> AsyncIterator[str]:
        yield f"{turn.text} yes"

    async def story(service: AsyncAgentService) -> str | None:
        heard.clear()
        await pair(service, "insists", "answers")
        await service.agents.stop("ann", "e")
        task = await service.tasks.send("ann", "d", "go")
        await until_so(lambda: heard)
        await service.agents.start("ann", "e")
        heard.append("started")
        return (await service.tasks.wait("ann", task, timeout=20)).result

    no = "agent:e could not answer: it is stopped"
    assert world({"insists": insists, "answers": answers}, story) == f"{no} and {no} and now? yes"


def test_all_others_hear_of_it_by_the_event(world: World) -> None:
    async def fails(turn: Turn) -> AsyncIterator[str]:
        yield ""
        raise ValueError

    async def listens(turn: Turn) -> AsyncIterator[str]:
        turn.state["heard"] = [*turn.state.get("heard", []), turn.data["fault"]]
        yield ""

    async def story(service: AsyncAgentService) -> tuple[list[str], list[int]]:
        await service.agents.create("ann", "ear", profile="listens", subscriptions=["agent.*"])
        await service.agents.create("ann", "d", profile="fails", max_attempts=1, subscriptions=["agent.*"])
        await done(service, "go")
        await service.agents.stop("ann", "d")
        await service.agents.delete("ann", "d")

        async def told() -> list[str]:
            return list((await service.agents.inspect("ann", "ear")).turn_state.get("heard", []))

        takers = [event.takers for event in await service.events.history("ann", name="agent.failed")]
        return await becomes(told, lambda found: len(found) == 3), takers

    assert world({"fails": fails, "listens": listens}, story) == (["internal", "stopped", "deleted"], [1, 1, 1])


def test_a_task_out_of_attempts_after_a_restart_fails_and_its_caller_is_notified() -> None:
    simulation = Simulation(seed=1)
    try:
        service = simulation.start(BRAINS, QUICK)
        task = simulation.run(begun(service))
        for _ in range(2 + 3):  # a death counts only in quarantine, which comes after two
            simulation.crash()
            service = simulation.start(BRAINS, QUICK)
            simulation.advance(1)
        result = simulation.run(service.tasks.wait("ann", task)).result or ""
        assert result.startswith("agent:e could not answer: it was tried 3 times")
        assert simulation.clock.elapsed < 60
    finally:
        simulation.crash()


def test_waiting_for_a_task_of_a_deleted_agent_fails_at_once() -> None:
    async def story(service: AsyncAgentService, simulation: Simulation) -> float:
        await service.agents.create("ann", "d", start=False)
        task = await service.tasks.send("ann", "d", "never")
        waiting = asyncio.ensure_future(service.tasks.wait("ann", task))
        await asyncio.sleep(0.1)
        start = simulation.clock.elapsed
        await service.agents.delete("ann", "d")
        with pytest.raises(roost.NotFound):
            await waiting
        return simulation.clock.elapsed - start

    with simulated(brains=BRAINS, limits=QUICK) as simulation:
        assert simulation.run(story(simulation.service, simulation)) < 1


class OwnError(BaseException):
    pass


@pytest.mark.parametrize("error", [asyncio.CancelledError, OwnError, SystemExit])
def test_an_exception_of_a_brain_fails_its_own_turn_only(world: World, error: type[BaseException]) -> None:
    async def raises(turn: Turn) -> AsyncIterator[str]:
        if turn.text == "bad":
            raise error
        await asyncio.sleep(0.2)
        yield f"try {turn.attempt}"

    async def story(service: AsyncAgentService) -> tuple[str | None, str, str]:
        await service.agents.create("ann", "d", profile="raises", max_attempts=1, max_concurrent_tasks=2)
        beside = await service.tasks.send("ann", "d", "good")
        bad = await done(service, "bad")
        [letter] = await service.dead_letters.list("ann")
        return (await service.tasks.wait("ann", beside, timeout=20)).result, bad.status, letter.fault

    assert world({"raises": raises}, story) == ("try 1", "failed", "internal")


def test_an_agent_out_of_hops_may_still_mail_people() -> None:
    async def endless(turn: Turn) -> AsyncIterator[str]:
        await turn.mail("user:ann", "still here", turn.text)
        await turn.send("agent:e" if turn.agent_id == "d" else "agent:d", "and on")
        yield ""

    async def story(service: AsyncAgentService) -> tuple[list[str], int]:
        await pair(service, "endless", "endless", max_attempts=1)
        await done(service, "go")
        letters = await becomes(lambda: service.dead_letters.list("ann"), bool)
        return [letter.fault for letter in letters], len(await service.mail.inbox("ann"))

    limits = roost.Limits(hops=3, drain=0.3, stop_patience=0.15)
    with simulated(brains={"endless": endless}, limits=limits) as simulation:
        faults, mails = simulation.run(story(simulation.service))
    assert (faults, mails) == (["hops"], 3)  # what the last turn wanted to send went with its failure


def test_every_caller_in_a_failed_chain_gets_the_cause_and_does_not_retry() -> None:
    tries: list[str] = []

    async def on_and_on(turn: Turn) -> AsyncIterator[str]:
        tries.append(str(turn.agent_id))
        yield await turn.ask("agent:e" if turn.agent_id == "d" else "agent:d", "and on")

    async def story(service: AsyncAgentService) -> tuple[roost.Task, list[roost.DeadLetter]]:
        await pair(service, "on_and_on", "on_and_on", max_concurrent_tasks=5)
        task = await done(service, "go")
        return task, list(await becomes(lambda: service.dead_letters.list("ann"), lambda found: len(list(found)) == 4))

    limits = roost.Limits(hops=3, drain=0.3, stop_patience=0.15)
    with simulated(brains={"on_and_on": on_and_on}, limits=limits) as simulation:
        task, letters = simulation.run(story(simulation.service))
    assert tries == ["d", "e", "d", "e"]
    assert sorted((letter.fault, letter.attempts) for letter in letters) == [("hops", 1), *[("no_answer", 1)] * 3]
    told = "The agent got no answer from another agent: agent:e could not answer: Agents kept answering each other"
    error = str(task.error)
    assert (error.startswith(told), error.count("could not answer"), error.count("reference")) == (True, 1, 1)


@pytest.mark.parametrize(
    ("to", "told"),
    [
        ("agent:full", "the inbox of the agent 'full' is full (1): try again later"),
        ("agent:nobody", "there is no agent 'nobody': it was deleted, or it never existed"),
        ("user:bob", "there is no 'user:bob' you may write to"),
    ],
)
def test_a_send_that_fails_is_reported_with_its_own_reason(to: str, told: str) -> None:
    async def sends(turn: Turn) -> AsyncIterator[str]:
        yield ""
        await turn.mail(to, "hello", "hello")

    async def story(service: AsyncAgentService) -> tuple[roost.Task, list[str]]:
        await service.agents.create("ann", "full", profile="holds", inbox_limit=1)
        await service.tasks.send("ann", "full", "one")
        await service.agents.create("ann", "d", profile="sends", max_attempts=1)
        return await done(service, "go"), [letter.fault for letter in await service.dead_letters.list("ann")]

    with simulated(brains={"sends": sends, "holds": holds}) as simulation:
        task, faults = simulation.run(story(simulation.service))
    assert str(task.error).startswith(f"The agent's action was declined: {told} (reference ")
    assert faults == ["declined"]


def test_an_answer_that_grows_too_long_says_so() -> None:
    async def endless(turn: Turn) -> AsyncIterator[str]:
        while True:
            yield "on and on "

    async def story(service: AsyncAgentService) -> list[str | None]:
        await service.agents.create("ann", "d", profile="endless", max_attempts=1)
        talk = await service.create_talk_session("ann", profile="endless")
        await service.add_message("ann", talk, "go")
        return [(await done(service, "go")).error, (await ended(service, talk))[-1].error]

    with simulated(brains={"endless": endless}, limits=roost.Limits(answer_chars=1_000)) as simulation:
        errors = simulation.run(story(simulation.service))
    assert all(str(error).startswith("The answer or the conversation grew too long") for error in errors)


def test_reasons_show_no_exceptions_of_others_and_no_secrets() -> None:
    async def raises(turn: Turn) -> AsyncIterator[str]:
        yield ""
        if turn.text == "ours":
            await turn.send("agent:sk-0123456789abcdefghij", "hello")
        raise roost.NotFound("canary") if turn.text == "as ours" else PermissionError("canary")

    async def story(service: AsyncAgentService) -> list[str | None]:
        await service.agents.create("ann", "d", profile="raises", max_attempts=1)
        return [(await done(service, text)).error for text in ("ours", "as ours", "theirs")]

    with simulated(brains={"raises": raises}) as simulation:
        ours, *theirs = simulation.run(story(simulation.service))
    assert "there is no agent" in str(ours)
    assert "0123456789" not in str(ours)
    assert "canary" not in str(theirs)
