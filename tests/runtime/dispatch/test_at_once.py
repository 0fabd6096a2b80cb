"""A3, A4, A12: how many agents are awake at once, and when what failed is tried again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.testing import Simulation
from tests.runtime.conftest import QUICK, World

pytestmark = pytest.mark.order


def test_no_more_are_awake_than_may_be_and_the_others_have_their_turn(simulated: World) -> None:
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

    assert simulated({"slow": slow}, story, replace(QUICK, awake_agents=3, warm_loops=1)) == {"done"}
    assert most == 3


@pytest.mark.parametrize("seed", range(5))
def test_what_fails_is_tried_again_after_pauses_that_double_and_are_not_all_alike(tmp_path: Path, seed: int) -> None:
    simulation = Simulation(tmp_path, seed)
    tried: list[float] = []

    async def broken(turn: Turn) -> AsyncIterator[str]:
        tried.append(simulation.clock.now())
        yield ""
        raise ValueError

    async def story() -> str:
        await service.agents.create("ann", "d", profile="broken", max_attempts=4, retry_delay=100.0)
        task = await service.tasks.send("ann", "d", "work")
        return (await service.tasks.wait("ann", task, timeout=10_000)).status

    service = simulation.start({"broken": broken}, QUICK)
    assert simulation.run(story()) == "failed"
    simulation.crash()
    shares = [(after - before) / (100.0 * 2**n) for n, (before, after) in enumerate(pairwise(tried))]
    assert len(shares) == 3
    assert all(0.5 <= share < 1.51 for share in shares)
    assert len({round(share, 3) for share in shares}) == 3


def test_one_that_is_paused_in_its_sleep_sleeps_on_until_it_is_resumed(simulated: World) -> None:
    async def parrot(turn: Turn) -> AsyncIterator[str]:
        yield turn.text

    async def story(service: AsyncAgentService) -> tuple[str, str, str | None]:
        await service.agents.create("ann", "d", profile="parrot")
        await service.agents.sleep("ann", "d", 5.0, wake_on=roost.mail("low"))
        await service.agents.pause("ann", "d")
        await service.mail.send("ann", "agent:d", "hello", "there", priority="urgent")
        await asyncio.sleep(30.0)
        paused = await service.agents.get("ann", "d")
        await service.agents.resume("ann", "d")
        await asyncio.sleep(1.0)
        resumed = await service.agents.get("ann", "d")
        return paused.state, resumed.state, resumed.wake_reason

    assert simulated({"parrot": parrot}, story) == ("sleeping", "idle", "time")
