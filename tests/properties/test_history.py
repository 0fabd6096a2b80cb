"""A2: an agent's history is a chain of legal moves, whatever is done to it at the same time, and ends where it is."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.core.agents.agent import MOVES, AgentChange
from roost.errors import BrainFailed, RoostError
from roost.testing import Crash, Simulation
from tests.runtime.conftest import QUICK, becomes


async def lives(turn: Turn) -> AsyncIterator[str]:
    """Work, wait for another, or sleep, as the text says."""
    what, _, seconds = turn.text.partition(" ")
    await asyncio.sleep(float(seconds or 0))
    if what == "ask":
        with suppress(RoostError, BrainFailed):
            await turn.ask("agent:e", "work 0.15", deadline=1)
    if what == "sleep":
        await turn.sleep(0.2, wake_on=roost.event("up"))
    yield "done"


BRAINS: dict[str, roost.Brain] = {"lives": lives}
CONFIG: dict[str, Any] = {"profile": "lives", "max_concurrent_tasks": 2, "idle_timeout": 0.05, "retry_delay": 0.01}


def is_chain(found: Sequence[AgentChange]) -> None:
    """Oldest first."""
    assert found[0].before is None
    assert all(one.after == other.before for one, other in pairwise(found))
    assert all(one.at <= other.at for one, other in pairwise(found))
    assert all(one.change_id < other.change_id for one, other in pairwise(found))
    assert all(one.after is one.before or one.after in MOVES[one.before] for one in found if one.before is not None)


async def act(service: AsyncAgentService, chance: random.Random) -> None:
    agents, tasks = service.agents, service.tasks
    length = chance.choice((0, 0.02, 0.15, 0.4))
    match chance.randrange(10):
        case 0:
            await agents.stop("ann", "d")
        case 1 | 2:
            await agents.start("ann", "d")
        case 3:
            await agents.pause("ann", "d")
        case 4:
            await agents.resume("ann", "d")
        case 5:
            await agents.sleep("ann", "d", chance.choice((0.05, 0.3)))
        case 6:
            await agents.wake("ann", "d")
        case 7:
            await agents.restart("ann", "d")
        case _:
            what = chance.choice(("work", "work", "ask", "sleep"))
            await tasks.send("ann", "d", f"{what} {length}", expires_in=5)
    await asyncio.sleep(chance.choice((0, 0, 0.005, 0.05, 0.2)))


async def meddle(service: AsyncAgentService, seed: int, acts: int) -> None:
    chance = random.Random(seed)
    for _ in range(acts):
        with suppress(roost.Conflict):
            await act(service, chance)


async def whole(service: AsyncAgentService) -> list[AgentChange]:
    found: list[AgentChange] = []
    while page := await service.agents.history("ann", "d", limit=7, before=found[-1].change_id if found else None):
        found += page
    return found[::-1]


async def settled(service: AsyncAgentService) -> None:
    """Let it do what is left; then its history ends in the state that it is in."""
    await service.agents.resume("ann", "d")
    await service.agents.start("ann", "d")
    await service.agents.wake("ann", "d")
    await becomes(lambda: service.agents.get("ann", "d"), lambda agent: not agent.queue_depth)

    async def ends() -> tuple[str, str]:
        return (await service.agents.history("ann", "d"))[0].after, (await service.agents.get("ann", "d")).state

    await becomes(ends, lambda found: found[0] == found[1])


async def made(service: AsyncAgentService) -> None:
    with suppress(roost.Conflict):
        await service.agents.create_many("ann", ["d", "e"], **CONFIG)


@pytest.mark.parametrize("seed", range(12))
def test_history_is_a_chain_and_ends_where_the_agent_is(tmp_path: Path, seed: int) -> None:
    simulation = Simulation(tmp_path, seed)
    service = simulation.start(BRAINS, QUICK)

    async def story() -> list[AgentChange]:
        await made(service)
        await asyncio.gather(*(meddle(service, seed * 10 + one, 25) for one in range(3)))
        before = await whole(service)
        await settled(service)
        after = await whole(service)
        assert after[: len(before)] == before, "what is on record is not changed any more"
        return after

    found = simulation.run(story())
    is_chain(found)
    assert len(found) > 20
    simulation.crash()


@pytest.mark.parametrize("seed", range(6))
def test_it_is_one_also_across_power_cuts(tmp_path: Path, seed: int) -> None:
    simulation, chance = Simulation(tmp_path, seed), random.Random(seed)
    for life in range(4):
        service = simulation.start(BRAINS, QUICK)
        assert simulation.database is not None
        simulation.database.crash_after = chance.randrange(20, 60) if life < 3 else None

        async def story(service: AsyncAgentService = service, life: int = life) -> None:
            await made(service)
            await asyncio.gather(*(meddle(service, seed * 100 + life * 10 + one, 15) for one in range(3)))

        with suppress(Crash):
            simulation.run(story())
        if simulation.host is not None and life < 3:
            simulation.crash()
    simulation.run(settled(simulation.service))
    is_chain(simulation.run(whole(simulation.service)))
    simulation.crash()


def test_threads_that_stop_and_start_at_the_same_time_leave_a_chain(tmp_path: Path) -> None:
    def meddles(service: roost.AgentService, seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(20):
            service.agents.stop("ann", "d")
            service.agents.start("ann", "d")
            service.tasks.send("ann", "d", f"work {chance.choice((0, 0, 0.002))}")

    with roost.open(f"sqlite:///{tmp_path}/threads.db", brains=BRAINS, limits=QUICK) as service:
        service.agents.create("ann", "d", **CONFIG)
        threads = [threading.Thread(target=meddles, args=(service, seed)) for seed in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        is_chain(service.agents.history("ann", "d", limit=1_000)[::-1])
