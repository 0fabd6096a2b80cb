"""A13: a provider that fails repeatedly is not called for a while; talks fail at once, agents wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.testing import Simulation
from tests.runtime.agents.test_agents import FAST
from tests.runtime.conftest import QUICK, ended

LIMITS = replace(QUICK, breaker_failures=5, breaker_pause=30.0)


class Provider:
    """A model's server, which is down for a while."""

    def __init__(self) -> None:
        self.down = True
        self.asked = 0

    async def __call__(self, turn: Turn) -> AsyncIterator[str]:
        self.asked += 1
        await asyncio.sleep(0.1)
        if self.down:
            raise ConnectionError
        yield f"answer to {turn.text}"


async def say(service: AsyncAgentService, talk: str, text: str) -> roost.Message:
    await service.add_message("ann", talk, text)
    return (await ended(service, talk))[-1]


def test_an_open_circuit_fails_talks_at_once_lets_agents_wait_and_closes_after_one_probe(tmp_path: Path) -> None:
    provider, simulation = Provider(), Simulation(tmp_path, seed=2)
    service = simulation.start({"model": provider}, LIMITS)

    async def story() -> None:
        talk = await service.create_talk_session("ann", profile="model")
        for number in range(5):
            assert "could not be reached" in ((await say(service, talk, str(number))).error or "")
        assert provider.asked == 5
        assert "keeps failing and is paused" in ((await say(service, talk, "again")).error or "")
        assert provider.asked == 5
        assert "'model' failed repeatedly" in (service.health().problem or "")

        await service.agents.create("ann", "d", profile="model", max_concurrent_tasks=3, **FAST)
        tasks = [await service.tasks.send("ann", "d", str(number)) for number in range(3)]
        await asyncio.sleep(20)
        assert provider.asked == 5
        assert [(await service.tasks.get("ann", task)).status for task in tasks] == ["queued"] * 3

        await asyncio.sleep(11)  # one tries, fails, and all wait again
        assert provider.asked == 6
        provider.down = False
        results = [(await service.tasks.wait("ann", task, timeout=60)).result for task in tasks]
        assert results == ["answer to 0", "answer to 1", "answer to 2"]
        assert (await say(service, talk, "now?")).content == "answer to now?"
        assert service.health().problem is None

    simulation.run(story())
    simulation.crash()


@pytest.mark.parametrize(
    "failure",
    [
        ValueError("its own mistake"),
        AssertionError("its own mistake"),
        RuntimeError("its own mistake"),
        KeyError("name"),
        OSError("no such file"),
        StopAsyncIteration("odd"),
        RecursionError("deep"),
        roost.NotFound("a brain can raise this too"),
        roost.NoAnswer("and this"),
        roost.Unavailable("and this"),
        *(roost.BrainFailed(kind, kind=kind) for kind in ("too_long", "refused", "odd")),
    ],
    ids=lambda failure: f"{type(failure).__name__}-{failure}"[:40],
)
def test_a_brain_that_fails_by_itself_opens_nothing(tmp_path: Path, failure: Exception) -> None:
    async def broken(turn: Turn) -> AsyncIterator[str]:
        yield ""
        raise failure

    simulation = Simulation(tmp_path, seed=2)
    service = simulation.start({"broken": broken}, LIMITS)

    async def story() -> None:
        talk = await service.create_talk_session("ann", profile="broken")
        await service.agents.create("ann", "d", profile="broken", max_attempts=2, retry_delay=0.01)
        for number in range(8):
            answer = await say(service, talk, str(number))
            assert answer.status == "failed"
            assert "keeps failing and is paused" not in (answer.error or "")
            task = await service.tasks.send("ann", "d", str(number))
            assert (await service.tasks.wait("ann", task, timeout=20)).status == "failed"
        assert service.health().problem is None

    simulation.run(story())
    simulation.crash()


def test_of_many_that_wait_one_tries_and_the_others_wait_for_its_luck(tmp_path: Path) -> None:
    asked: list[str] = []

    async def slow(turn: Turn) -> AsyncIterator[str]:
        asked.append(turn.text)
        await asyncio.sleep(5.0)
        if len(asked) <= 6:
            raise ConnectionError
        yield "answer"

    simulation = Simulation(tmp_path, seed=2)
    service = simulation.start({"model": slow}, LIMITS)

    async def story() -> None:
        names = [f"d{number}" for number in range(5)]
        await service.agents.create_many("ann", names, profile="model", **{**FAST, "retry_delay": 0.5})
        tasks = [await service.tasks.send("ann", name, name) for name in names]
        await asyncio.sleep(7.0)
        assert (len(asked), service.roost.context.breakers.open()) == (5, ["model"])
        await asyncio.sleep(30.0)  # one tries, and takes its time
        assert len(asked) == 6
        await asyncio.sleep(36.0)  # it has failed; another one tries, and has not come to its end
        assert len(asked) == 7
        done = [await service.tasks.wait("ann", task, timeout=60) for task in tasks]
        assert {task.status for task in done} == {"done"}

    simulation.run(story())
    simulation.crash()


def test_an_agent_that_does_not_answer_says_nothing_about_a_provider(tmp_path: Path) -> None:
    async def silent(turn: Turn) -> AsyncIterator[str]:
        await asyncio.sleep(1_000)
        yield ""

    async def asker(turn: Turn) -> AsyncIterator[str]:
        yield await turn.ask("agent:q", "?", deadline=0.05) if turn.text == "ask" else "here"

    simulation = Simulation(tmp_path, seed=2)
    service = simulation.start({"asker": asker, "silent": silent}, replace(LIMITS, breaker_failures=3))

    async def story() -> None:
        await service.agents.create("ann", "q", profile="silent")
        await service.agents.create("ann", "d", profile="asker", **FAST)
        await service.agents.create("bob", "d", profile="asker", **FAST)
        for _ in range(4):
            task = await service.tasks.wait("ann", await service.tasks.send("ann", "d", "ask"), timeout=20)
            assert "got no answer from another agent: agent:q has not answered in time" in (task.error or "")
        assert service.roost.context.breakers.open() == []
        started = simulation.clock.elapsed
        task = await service.tasks.wait("bob", await service.tasks.send("bob", "d", "hello"), timeout=20)
        assert (task.result, simulation.clock.elapsed - started < 1.0) == ("here", True)

    simulation.run(story())
    simulation.crash()


async def down(service: AsyncAgentService) -> None:
    """The breaker is open from now on."""
    talk = await service.create_talk_session("ann", profile="model")
    while not service.roost.context.breakers.open():
        await say(service, talk, "hello")


def test_a_task_that_waits_for_a_provider_can_be_cancelled_and_others_continue(tmp_path: Path) -> None:
    provider, simulation = Provider(), Simulation(tmp_path, seed=2)
    service = simulation.start({"model": provider}, LIMITS)

    async def story() -> None:
        await down(service)
        await service.agents.create("ann", "d", profile="model", max_concurrent_tasks=2, **FAST)
        first, second = [await service.tasks.send("ann", "d", text) for text in ("one", "two")]
        await asyncio.sleep(1.0)
        epoch = service.roost.dispatcher.awake("ann/d").epoch  # type: ignore[union-attr]
        await service.tasks.cancel("ann", first)
        provider.down = False
        assert (await service.tasks.wait("ann", second, timeout=60)).result == "answer to two"
        assert (await service.tasks.get("ann", first)).status == "cancelled"
        assert service.roost.dispatcher.awake("ann/d").epoch == epoch  # type: ignore[union-attr]

    simulation.run(story())
    simulation.crash()


def test_what_expires_while_it_waits_for_a_provider_is_given_up_then(tmp_path: Path) -> None:
    provider, simulation = Provider(), Simulation(tmp_path, seed=2)
    service = simulation.start({"model": provider}, LIMITS)

    async def story() -> None:
        await down(service)
        await service.agents.create("ann", "d", profile="model", **FAST)
        task = await service.tasks.send("ann", "d", "soon", expires_in=2.0)
        started = simulation.clock.elapsed
        assert (await service.tasks.wait("ann", task, timeout=60)).status == "expired"
        assert simulation.clock.elapsed - started < 3.0

    simulation.run(story())
    simulation.crash()


def test_what_has_expired_takes_no_try_from_the_others(tmp_path: Path) -> None:
    provider, simulation = Provider(), Simulation(tmp_path, seed=2)
    service = simulation.start({"model": provider}, LIMITS)

    async def story() -> None:
        await down(service)
        names = [f"d{number}" for number in range(6)]
        await service.agents.create_many("ann", [*names, "last"], profile="model", **FAST)
        for name in names:
            await service.tasks.send("ann", name, "too late", expires_in=29.0)
        task = await service.tasks.send("ann", "last", "real")
        provider.down = False
        started = simulation.clock.elapsed
        assert (await service.tasks.wait("ann", task, timeout=300)).result == "answer to real"
        assert simulation.clock.elapsed - started < 32.0

    simulation.run(story())
    simulation.crash()


def test_a_try_that_is_stopped_leaves_it_to_the_next_one(tmp_path: Path) -> None:
    async def stuck(turn: Turn) -> AsyncIterator[str]:
        if turn.text != "real":
            await asyncio.sleep(1_000 if turn.text == "slow" else 0)
            raise ConnectionError
        yield "answer"

    simulation = Simulation(tmp_path, seed=2)
    service = simulation.start({"model": stuck}, LIMITS)

    async def story() -> None:
        await down(service)
        await service.agents.create_many("ann", ["d", "e"], profile="model", **FAST)
        slow = await service.tasks.send("ann", "d", "slow")
        await asyncio.sleep(31.0)  # it tries
        task = await service.tasks.send("ann", "e", "real")
        await asyncio.sleep(1.0)
        await service.tasks.cancel("ann", slow)
        started = simulation.clock.elapsed
        assert (await service.tasks.wait("ann", task, timeout=300)).result == "answer"
        assert simulation.clock.elapsed - started < 5.0

    simulation.run(story())
    simulation.crash()


def test_an_answer_that_is_stopped_leaves_the_try_to_the_next_one(tmp_path: Path) -> None:
    provider, simulation = Provider(), Simulation(tmp_path, seed=2)
    service = simulation.start({"model": provider}, LIMITS)

    async def story() -> None:
        await down(service)
        await asyncio.sleep(31.0)
        provider.down, talk = False, await service.create_talk_session("ann", profile="model")
        await service.add_message("ann", talk, "never mind")
        await asyncio.sleep(0.05)
        await service.stop("ann", talk)
        assert (await say(service, talk, "now?")).content == "answer to now?"

    simulation.run(story())
    simulation.crash()


def test_opening_and_closing_a_circuit_are_facts_for_all_users(tmp_path: Path) -> None:
    provider, simulation = Provider(), Simulation(tmp_path, seed=2)
    service = simulation.start({"model": provider}, LIMITS)

    async def shown() -> tuple[list[str], float | None]:
        facts = [fact for fact in (await service.monitor.facts("bob")).facts if fact.data == {"provider": "model"}]
        values = (await service.monitor.metrics())["roost_breaker_open"].values
        return [str(fact.name) for fact in facts], values.get(("model",))  # type: ignore[return-value]

    async def story() -> None:
        assert await shown() == ([], None)
        await down(service)
        assert await shown() == (["ProviderPaused"], 1)
        await asyncio.sleep(31.0)
        provider.down = False
        await say(service, await service.create_talk_session("ann", profile="model"), "now?")
        assert await shown() == (["ProviderPaused", "ProviderResumed"], 0)

    simulation.run(story())
    simulation.crash()
