"""A12: budgets per origin: runs, messages, meetings, tokens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

import roost
from roost import AsyncAgentService, DeadLetter, Turn
from roost.core.limits.budgets import Resource
from roost.runtime.limits import origin_budgets as budgets
from roost.runtime.limits.origin_budgets import OriginBudgets
from roost.testing import Simulation, simulated
from tests.runtime.agents.test_agents import done
from tests.runtime.conftest import QUICK, World, becomes, until

SMALL = replace(QUICK, runs_per_origin=50, messages_per_origin=40, meetings_per_origin=3, tokens_per_origin=1_000)


class Echoes:
    """A brain that answers each event with two, which another one hears."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.runs: list[str] = []
        self._seconds = seconds

    async def __call__(self, turn: Turn) -> AsyncIterator[str]:
        self.runs.append(turn.run_id)
        await asyncio.sleep(self._seconds)
        if turn.text == "agent.failed":
            return
        for _ in range(2):
            await turn.publish("pong" if turn.text == "ping" else "ping")
        yield ""


async def two(service: AsyncAgentService) -> None:
    await service.agents.create("ann", "a", profile="echoes", subscriptions=["ping"])
    await service.agents.create("ann", "b", profile="echoes", subscriptions=["pong"])


async def quiet(service: AsyncAgentService, *names: str) -> None:
    async def depth() -> int:
        return sum([(await service.agents.get("ann", name)).queue_depth for name in names])

    await becomes(depth, lambda found: not found)


async def letters(service: AsyncAgentService) -> list[DeadLetter]:
    return [one for one in await service.dead_letters.list("ann", limit=200) if one.fault == "budget"]


def test_two_agents_that_trigger_each_other_are_cut_off(world: World) -> None:
    echoes = Echoes()

    async def story(service: AsyncAgentService) -> list[DeadLetter]:
        await two(service)
        await service.events.publish("ann", "ping")
        await becomes(lambda: letters(service))
        await quiet(service, "a", "b")
        return await letters(service)

    found = world({"echoes": echoes}, story, replace(SMALL, messages_per_origin=10_000))
    assert 40 <= len(echoes.runs) <= 50 + 3 + 5, "the first two generations do not count"
    assert found
    assert "raise the limit runs_per_origin (50)" in found[-1].reason
    assert "make sure that agents do not trigger each other" in found[0].reason


def test_a_spent_budget_is_reported_once_and_other_origins_have_their_own(world: World) -> None:
    echoes = Echoes()

    async def story(service: AsyncAgentService) -> tuple[int, int, int]:
        await two(service)
        await service.events.publish("ann", "ping")
        await becomes(lambda: letters(service))
        await quiet(service, "a", "b")
        before, told = len(echoes.runs), len(await service.events.history("ann", name="agent.failed"))
        await service.events.publish("ann", "ping")
        await until(lambda: len(echoes.runs) >= before + 40)
        await quiet(service, "a", "b")
        return before, len(echoes.runs), told

    before, after, told = world({"echoes": echoes}, story, replace(SMALL, messages_per_origin=10_000))
    assert told == 1
    assert after - before == pytest.approx(before, abs=5)


def test_what_a_budget_has_cut_off_starts_a_new_origin_when_it_is_retried() -> None:
    echoes = Echoes()

    async def story(service: AsyncAgentService) -> int:
        await two(service)
        await service.events.publish("ann", "ping")
        [letter, *_] = await becomes(lambda: letters(service))
        await quiet(service, "a", "b")
        before = len(echoes.runs)
        await service.dead_letters.retry("ann", letter.letter_id)
        await until(lambda: len(echoes.runs) >= before + 40)
        return len(echoes.runs) - before

    with simulated(brains={"echoes": echoes}, limits=replace(SMALL, messages_per_origin=10_000)) as simulation:
        assert simulation.run(story(simulation.service)) >= 40


def test_one_turn_may_tell_any_number(world: World) -> None:
    heard: list[str] = []

    async def chief(turn: Turn) -> AsyncIterator[str]:
        for number in range(100):
            await turn.send("agent:sink", str(number))
        yield "told"

    async def sink(turn: Turn) -> AsyncIterator[str]:
        heard.append(turn.text)
        yield ""

    async def story(service: AsyncAgentService) -> str | None:
        await service.agents.create("ann", "d", profile="chief")
        await service.agents.create("ann", "sink", profile="sink")
        result = (await done(service, "go")).result
        await until(lambda: len(heard) == 100)
        return result

    assert world({"chief": chief, "sink": sink}, story, SMALL) == "told"


def test_messages_are_bounded_also_to_people(world: World) -> None:
    async def teller(turn: Turn) -> AsyncIterator[str]:
        if turn.kind == "task" and turn.sender.startswith("user:"):
            await turn.send("agent:d", "again")
        else:
            for number in range(100):
                await turn.mail("user:ann", "news", str(number))
        yield ""

    async def story(service: AsyncAgentService) -> tuple[DeadLetter, int]:
        await service.agents.create("ann", "d", profile="teller", max_attempts=3)
        await done(service, "go")
        [letter] = await becomes(lambda: letters(service))
        return letter, len(await service.mail.inbox("ann", limit=100))

    letter, mails = world({"teller": teller}, story, SMALL)
    assert (letter.kind, letter.attempts) == ("task", 1), "another try would come to the same"
    assert "raise the limit messages_per_origin (40)" in letter.reason
    assert mails <= 40


def test_meetings_are_bounded(world: World) -> None:
    async def convener(turn: Turn) -> AsyncIterator[str]:
        for number in range(5):
            await turn.call_meeting(f"topic {number}", required=["agent:e"])
        yield ""

    async def idle(turn: Turn) -> AsyncIterator[str]:
        yield ""

    async def story(service: AsyncAgentService) -> tuple[roost.Task, int]:
        await service.agents.create("ann", "d", profile="convener", max_attempts=1)
        await service.agents.create("ann", "e", profile="idle")
        task = await done(service, "go")
        return task, len(await service.meetings.list("ann", participant="agent:d"))

    task, held = world({"convener": convener, "idle": idle}, story, SMALL)
    assert task.status == "failed"
    assert "meetings_per_origin (3)" in str(task.error)
    assert held <= 3


@pytest.mark.parametrize("where", ["talk", "agent"])
def test_tokens_are_bounded_over_all_that_comes_of_one_thing(world: World, where: str) -> None:
    allowed: list[int | None] = []

    async def model(turn: Turn) -> AsyncIterator[str]:
        allowed.append(turn.allowance())
        turn.spend(roost.Usage(300, 100))
        yield await turn.ask("agent:d", "next") if turn.text != "end" else ""

    async def story(service: AsyncAgentService) -> str:
        await service.agents.create("ann", "d", profile="model", max_attempts=1, max_concurrent_tasks=9)
        if where == "agent":
            return str((await done(service, "go")).error)
        talk = await service.create_talk_session("ann", profile="model")
        await service.add_message("ann", talk, "go")
        async for _ in service.stream_messages("ann", talk):
            pass
        return str((await service.get_messages("ann", talk)).messages[-1].error)

    error = world({"model": model}, story, SMALL)
    assert allowed == [1_000, 600, 200]
    assert "got no answer" in error
    assert "tokens_per_origin" in error


def test_what_is_spent_before_the_counts_are_loaded_is_counted_once() -> None:
    with simulated(brains={}, limits=SMALL) as simulation:
        budgets = simulation.service.roost.context.budgets
        budgets._is_loaded = False  # as in the first moments of a process
        budgets.add("root", Resource.TOKENS, 400)
        simulation.advance(1)
        simulation.run(budgets.load())
        assert budgets.left("root", Resource.TOKENS) == 600


def test_what_was_spent_is_known_after_a_crash(tmp_path: Path) -> None:
    echoes = Echoes(0.005)  # so that what is counted is committed meanwhile
    simulation = Simulation(tmp_path, seed=3)
    limits = replace(SMALL, runs_per_origin=200, messages_per_origin=10_000)
    lives = 0

    async def story(service: AsyncAgentService) -> bool:
        if not lives:
            await two(service)
            await service.events.publish("ann", "ping")
        most = len(echoes.runs) + 60
        await until(lambda: len(echoes.runs) >= most or has_ended(simulation))
        return has_ended(simulation)

    while not simulation.run(story(simulation.start({"echoes": echoes}, limits))):
        lives += 1
        simulation.crash()
        assert lives < 12, "each life has a budget of its own"
    assert lives >= 2
    assert len(echoes.runs) <= 200 + lives * (200 // 20 + 10)
    simulation.crash()


def has_ended(simulation: Simulation) -> bool:
    return bool(simulation.rows("SELECT 1 FROM dead_letters WHERE fault = 'budget'"))


def test_small_spenders_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "MOST", 10)

    async def story(registry: OriginBudgets) -> tuple[int, int]:
        registry.add("big", Resource.RUNS, 45)
        for number in range(100):
            registry.add(f"small {number}", Resource.RUNS, 1)
        return registry.left("big", Resource.RUNS), len(registry._spent)

    with simulated(brains={"echoes": Echoes()}, limits=SMALL) as simulation:
        left, held = simulation.run(story(simulation.service._talks._context.budgets))
    assert left == 5
    assert held <= 10
