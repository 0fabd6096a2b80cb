"""A12: the number of awake agents is limited and visible, and no agent waits endlessly for a place."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Turn
from tests.runtime.conftest import QUICK, World, becomes, ended, until

pytestmark = pytest.mark.order

THREE = replace(QUICK, awake_agents=3, warm_loops=1)


class Team:
    """Agents a0 … each ask their own b0 …, once all of them have begun."""

    def __init__(self, size: int, together: int | None = None) -> None:
        self.size = size
        self.together = together or size
        self.begun: set[str] = set()

    async def __call__(self, turn: Turn) -> AsyncIterator[str]:
        name = str(turn.agent_id)
        if name.startswith("b"):
            await asyncio.sleep(0.05)
            yield f"{name} says {turn.text}"
            return
        self.begun.add(name)
        await until(lambda: len(self.begun) >= self.together)
        yield await turn.ask(f"agent:b{name[1:]}", "hello", deadline=60)
        await asyncio.sleep(0.05)  # so that it still works after it was answered

    def brain(self) -> roost.Brain:
        async def member(turn: Turn) -> AsyncIterator[str]:
            async for piece in self(turn):
                yield piece

        return member

    async def make(self, service: AsyncAgentService) -> None:
        names = [f"{letter}{number}" for letter in "ab" for number in range(self.size)]
        await service.agents.create_many("ann", names, profile="member", idle_timeout=5.0)


async def watched(service: AsyncAgentService, tasks: list[str]) -> tuple[list[Any], int]:
    """Return the ends of the tasks, and the highest number awake meanwhile."""
    most, looking = 0, True

    async def look() -> None:
        nonlocal most
        while looking:
            most = max(most, service.health().awake)
            await asyncio.sleep(0.002)

    looker = asyncio.create_task(look())
    ends = [await service.tasks.wait("ann", task, timeout=60) for task in tasks]
    looking = False
    await looker
    return [(end.status, end.result) for end in ends], most


@pytest.mark.parametrize("size", [3, 12])
def test_three_places_are_enough_for_agents_that_ask_each_other(world: World, size: int) -> None:
    team = Team(size, together=3)

    async def story(service: AsyncAgentService) -> tuple[list[Any], int]:
        await team.make(service)
        tasks = [await service.tasks.send("ann", f"a{number}", "go") for number in range(size)]
        return await watched(service, tasks)

    ends, most = world({"member": team.brain()}, story, THREE)
    assert ends == [("done", f"b{number} says hello") for number in range(size)]
    assert most == 3


def test_one_that_stepped_aside_begins_nothing_new_without_a_place(world: World) -> None:
    """Also no turn of a talk."""
    team, working = Team(1), []

    async def member(turn: Turn) -> AsyncIterator[str]:
        if turn.text == "go":
            async for piece in team(turn):
                yield piece
            return
        working.append(turn.agent_id)
        assert set(working) == {turn.agent_id}
        await asyncio.sleep(0.05)
        working.remove(turn.agent_id)
        yield "done"

    async def story(service: AsyncAgentService) -> list[str]:
        await team.make(service)
        await service.agents.configure("ann", "a0", max_concurrent_tasks=3)
        await service.agents.create("ann", "c", profile="member", idle_timeout=5.0)
        talk = await service.create_talk_session("ann", agent="a0")
        tasks = [await service.tasks.send("ann", "a0", "go")]
        await until(lambda: team.begun)
        for name in ("a0", "c", "a0", "c"):
            tasks.append(await service.tasks.send("ann", name, "work"))
        await service.add_message("ann", talk, "work")
        ends = [(await service.tasks.wait("ann", task, timeout=60)).status for task in tasks]
        return [*ends, (await ended(service, talk))[-1].content]

    found = world({"member": member}, story, replace(QUICK, awake_agents=1, warm_loops=1))
    assert found == ["done"] * 5 + ["done"]


def test_health_and_metrics_say_that_agents_wait_for_a_place(world: World) -> None:
    go: list[bool] = []

    async def slow(turn: Turn) -> AsyncIterator[str]:
        await until(lambda: go)
        yield "done"

    async def story(service: AsyncAgentService) -> tuple[Any, ...]:
        await service.agents.create_many("ann", [f"d{number}" for number in range(5)], profile="slow")
        tasks = [await service.tasks.send("ann", f"d{number}", "work") for number in range(5)]

        async def health() -> roost.Health:
            return service.health()

        told = await becomes(health, lambda found: found.problem and found.waiting_for_place == 2)
        states = Counter(str(one.health) for one in (await service.monitor.states("ann")).values())
        metrics = await service.monitor.metrics()
        go.append(True)
        for task in tasks:
            await service.tasks.wait("ann", task, timeout=20)
        well = await becomes(health, lambda found: found.problem is None)
        return (
            told.problem,
            told.awake,
            told.waiting_for_place,
            states["alive"],
            states["waiting"],
            metrics["roost_awake_agents"].values[()],
            metrics["roost_agents_waiting"].values[()],
            well.waiting_for_place,
        )

    problem, *rest = world({"slow": slow}, story, THREE)
    assert problem.startswith("2 agents wait for a slot: all 3 are taken (awake_agents)")
    assert rest == [3, 2, 3, 2, 3, 2, 0]


def test_agents_beyond_the_limit_wait_for_a_place_and_work_later(simulated: World) -> None:
    busy: set[str | None] = set()
    most = 0

    async def slow(turn: Turn) -> AsyncIterator[str]:
        nonlocal most
        busy.add(turn.agent_id)
        most = max(most, len(busy))
        await asyncio.sleep(1.0)
        busy.discard(turn.agent_id)
        yield "done"

    async def story(service: AsyncAgentService) -> set[str]:
        names = [f"d{number}" for number in range(9)]
        await service.agents.create_many("ann", names, profile="slow", idle_timeout=5.0)
        tasks = [await service.tasks.send("ann", name, "work") for name in names]
        return {(await service.tasks.wait("ann", task, timeout=60)).status for task in tasks}

    assert simulated({"slow": slow}, story, THREE) == {"done"}
    assert most == 3
