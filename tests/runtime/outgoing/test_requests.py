"""M1, M2: a turn asks another agent and waits, without blocking its own agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.runtime.outgoing.requests import Requests
from roost.testing import Simulation
from tests.runtime.agents.test_agents import FAST, done, until
from tests.runtime.conftest import QUICK, World

pytestmark = pytest.mark.order


async def doubles(turn: Turn) -> AsyncIterator[str]:
    yield str(int(turn.text) * 2)


async def asks(turn: Turn) -> AsyncIterator[str]:
    yield f"it said {await turn.ask('agent:e', turn.text, deadline=5)}"


async def pair(service: AsyncAgentService, first: str, second: str, **config: Any) -> None:
    await service.agents.create("ann", "d", profile=first, **FAST, **config)
    await service.agents.create("ann", "e", profile=second, **FAST, **config)


def test_the_answer_is_what_the_other_says(world: World) -> None:
    async def story(service: AsyncAgentService) -> roost.Task:
        await pair(service, "asks", "doubles")
        return await done(service, "21")

    assert world({"asks": asks, "doubles": doubles}, story).result == "it said 42"


def test_an_agent_that_asks_is_waiting_and_its_other_lanes_continue(world: World) -> None:
    release: list[bool] = []

    async def holds(turn: Turn) -> AsyncIterator[str]:
        while not release:  # noqa: ASYNC110 — what is waited for happens on another loop
            await asyncio.sleep(0.005)
        yield "at last"

    async def either(turn: Turn) -> AsyncIterator[str]:
        yield await turn.ask("agent:e", "well?") if turn.text == "ask" else "meanwhile"

    async def story(service: AsyncAgentService) -> tuple[str, str | None, str | None]:
        await pair(service, "either", "holds", max_concurrent_tasks=1)
        asking = await service.tasks.send("ann", "d", "ask")
        state = (await until(service, lambda agent: agent.state == "waiting")).state
        beside = await done(service, "something else")
        release.append(True)
        return state, beside.result, (await service.tasks.wait("ann", asking, timeout=20)).result

    assert world({"either": either, "holds": holds}, story) == ("waiting", "meanwhile", "at last")


def test_two_that_ask_each_other_do_not_block_each_other(world: World) -> None:
    async def mutual(turn: Turn) -> AsyncIterator[str]:
        if turn.sender.startswith("agent:"):
            yield f"I am {turn.agent_id}"
        else:
            yield await turn.ask("agent:e" if turn.agent_id == "d" else "agent:d", "who are you?")

    async def story(service: AsyncAgentService) -> list[str | None]:
        await pair(service, "mutual", "mutual", max_concurrent_tasks=1)
        tasks = [await service.tasks.send("ann", agent, "ask the other") for agent in ("d", "e")]
        return [(await service.tasks.wait("ann", task, timeout=20)).result for task in tasks]

    assert world({"mutual": mutual}, story) == ["I am e", "I am d"]


def test_a_ring_of_ten_that_ask_each_other_does_not_block(world: World) -> None:
    async def ring(turn: Turn) -> AsyncIterator[str]:
        left = int(turn.text)
        following = (int(str(turn.agent_id)) + 1) % 10
        yield "end" if left == 0 else f"{turn.agent_id} {await turn.ask(f'agent:{following}', str(left - 1))}"

    async def story(service: AsyncAgentService) -> str | None:
        await service.agents.create_many("ann", [str(n) for n in range(10)], profile="ring", max_concurrent_tasks=1)
        task = await service.tasks.send("ann", "0", "12")
        return (await service.tasks.wait("ann", task, timeout=20)).result

    assert world({"ring": ring}, story) == "0 1 2 3 4 5 6 7 8 9 0 1 end"


def test_a_failed_request_raises_in_the_caller(world: World) -> None:
    async def fails(turn: Turn) -> AsyncIterator[str]:
        yield ""
        raise ValueError

    async def careful(turn: Turn) -> AsyncIterator[str]:
        try:
            yield await turn.ask("agent:e", "well?")
        except roost.NoAnswer as error:
            yield f"no answer: {error}"

    async def story(service: AsyncAgentService) -> str:
        await pair(service, "careful", "fails")
        return str((await done(service, "go")).result)

    told = world({"careful": careful, "fails": fails}, story)
    assert told.startswith("no answer: agent:e could not answer: The agent could not finish")


@pytest.mark.parametrize("deadline", [5, 11, 17])
def test_a_late_answer_is_delivered_as_late(tmp_path: Path, deadline: float) -> None:
    times: list[float] = []
    heard: list[tuple[str, str, str, roost.LateAnswer]] = []
    simulation = Simulation(tmp_path, seed=4)

    async def slow(turn: Turn) -> AsyncIterator[str]:
        await asyncio.sleep(deadline + 1)
        yield "the answer"

    async def asks_in_time(turn: Turn) -> AsyncIterator[str]:
        if turn.kind == "answer":
            heard.append((turn.sender, turn.text, turn.messages[0].content, turn.answer))
            return
        start = simulation.clock.elapsed
        with pytest.raises(roost.NoAnswer, match="in time"):
            await turn.ask("agent:e", "well?", deadline=deadline)
        times.append(simulation.clock.elapsed - start)
        yield "went on"

    service = simulation.start({"slow": slow, "asks": asks_in_time}, QUICK)

    async def story() -> str | None:
        await pair(service, "asks", "slow")
        result = (await done(service, "go")).result
        await until(service, lambda agent: bool(heard) and not agent.queue_depth)
        return result

    assert simulation.run(story()) == "went on"
    assert times[0] == pytest.approx(deadline, abs=0.1)
    late = roost.LateAnswer("well?", "the answer", None)
    assert heard == [("agent:ann/e", "the answer", "the answer", late)]
    simulation.crash()


@pytest.mark.parametrize("deadline", [5, 12, 60])
def test_an_answer_whose_notification_was_lost_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deadline: float
) -> None:
    monkeypatch.setattr(Requests, "answered", lambda *_: None)
    simulation = Simulation(tmp_path, seed=4)

    async def asks_many(turn: Turn) -> AsyncIterator[str]:
        yield " ".join(await asyncio.gather(*(turn.ask("agent:e", n, deadline=deadline) for n in ("1", "2"))))

    service = simulation.start({"doubles": doubles, "asks": asks_many}, QUICK)

    async def story() -> tuple[str | None, float]:
        await pair(service, "asks", "doubles")
        start = simulation.clock.elapsed
        return (await done(service, "go")).result, simulation.clock.elapsed - start

    result, took = simulation.run(story())
    assert result == "2 4"
    assert took <= 10.1
    simulation.crash()


def test_a_repeated_turn_gets_the_answers_to_what_it_asks_now_and_not_to_what_it_asked(world: World) -> None:
    asked: list[str] = []

    async def answers(turn: Turn) -> AsyncIterator[str]:
        asked.append(turn.text)
        yield f"{turn.text}, {len(asked)}"

    async def changes_its_mind(turn: Turn) -> AsyncIterator[str]:
        words = ("one", "two", "two") if turn.attempt == 1 else ("two", "three", "one", "two")
        told = [await turn.ask("agent:e", word) for word in words]
        if turn.attempt == 1:
            raise ValueError
        yield "; ".join(told)

    async def story(service: AsyncAgentService) -> tuple[str | None, bool]:
        await pair(service, "changes", "answers")
        task = await done(service, "go")
        [run] = [run for run in await service.runs.list("ann", agent="d") if run.outcome == "done"]
        return task.result, (await service.runs.replay("ann", run.run_id)).is_identical

    assert world({"changes": changes_its_mind, "answers": answers}, story) == ("two, 2; three, 4; one, 1; two, 3", True)
    assert asked == ["one", "two", "two", "three"]


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_crash_at_any_commit_asks_once_and_gets_the_answer(tmp_path: Path, side: str) -> None:
    for commit in range(1, 14):
        folder = tmp_path / str(commit)
        folder.mkdir()
        handled: list[str] = []

        async def counts(turn: Turn, handled: list[str] = handled) -> AsyncIterator[str]:
            turn.state["count"] = turn.state.get("count", 0) + 1
            handled.append(turn.run_id)
            yield f"answer {turn.state['count']}"

        simulation = Simulation(folder, seed=commit)
        service = simulation.start({"asks": asks, "counts": counts}, QUICK)

        async def begin(service: AsyncAgentService = service) -> None:
            await pair(service, "asks", "counts")

        simulation.run(begin())
        database = simulation.database
        assert database is not None
        setattr(database, f"crash_{side}", database.commits + commit)

        async def go(service: AsyncAgentService = service) -> None:
            task = await service.tasks.send("ann", "d", "go", key="once")
            await service.tasks.wait("ann", task)

        try:
            simulation.run(go())
            simulation.crash()
        except KeyboardInterrupt:  # the power was cut
            pass
        service = simulation.start({"asks": asks, "counts": counts}, QUICK)

        async def look(service: AsyncAgentService = service) -> str | None:
            task = await service.tasks.send("ann", "d", "go", key="once")
            return (await service.tasks.wait("ann", task, timeout=60)).result

        assert simulation.run(look()) == "it said answer 1", f"crashed {side} commit {commit}"
        simulation.crash()


def test_a_hundred_at_once_get_each_its_own_answer_in_whatever_order(world: World) -> None:
    async def shuffles(turn: Turn) -> AsyncIterator[str]:
        await asyncio.sleep(int(turn.text) * 37 % 100 / 2_000)
        yield f"answer {turn.text}"

    async def asks_100(turn: Turn) -> AsyncIterator[str]:
        asked = (turn.ask("agent:e", str(number), deadline=20) for number in range(100))
        yield ", ".join(await asyncio.gather(*asked))

    async def story(service: AsyncAgentService) -> str | None:
        await pair(service, "asks_100", "shuffles", max_concurrent_tasks=100)
        return (await done(service, "go")).result

    answers = world({"asks_100": asks_100, "shuffles": shuffles}, story)
    assert answers == ", ".join(f"answer {number}" for number in range(100))


def test_an_agent_that_has_waited_begins_nothing_new_without_a_place(world: World) -> None:
    running: list[int] = [0, 0]

    async def answers(turn: Turn) -> AsyncIterator[str]:
        await asyncio.sleep(0.05)
        yield "yes"

    async def either(turn: Turn) -> AsyncIterator[str]:
        if turn.text == "ask":
            yield await turn.ask("agent:e", "well?")
            return
        running[0] += 1
        running[1] = max(running)
        await asyncio.sleep(0.1)
        running[0] -= 1
        yield "done"

    async def story(service: AsyncAgentService) -> None:
        await pair(service, "either", "answers")
        tasks = [await service.tasks.send("ann", "d", text) for text in ("ask", "one", "two", "three")]
        for task in tasks:
            await service.tasks.wait("ann", task, timeout=20)

    world({"either": either, "answers": answers}, story)
    assert running[1] == 1


def test_a_turn_that_waits_for_many_answers_leaves_one_place(world: World) -> None:
    release: list[bool] = []
    beside: list[int] = [0, 0]

    async def holds(turn: Turn) -> AsyncIterator[str]:
        while not release:  # noqa: ASYNC110 — what is waited for happens on another loop
            await asyncio.sleep(0.005)
        yield turn.text

    async def either(turn: Turn) -> AsyncIterator[str]:
        if turn.text == "ask":
            yield "".join(await asyncio.gather(*(turn.ask("agent:e", name) for name in "abc")))
            return
        beside[0] += 1
        beside[1] = max(beside)
        await asyncio.sleep(0.02)
        beside[0] -= 1
        yield "meanwhile"

    async def story(service: AsyncAgentService) -> str | None:
        await pair(service, "either", "holds")
        asking = await service.tasks.send("ann", "d", "ask")
        await until(service, lambda agent: agent.state == "waiting")
        others = [await service.tasks.send("ann", "d", "something else") for _ in range(3)]
        for task in others:
            await service.tasks.wait("ann", task, timeout=20)
        release.append(True)
        return (await service.tasks.wait("ann", asking, timeout=20)).result

    assert world({"either": either, "holds": holds}, story) == "abc"
    assert beside[1] == 1
