"""A4: only a turn that has begun counts as an attempt; retries come after pauses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import pairwise
from pathlib import Path

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.testing import Simulation
from tests.runtime.conftest import QUICK, World, becomes

pytestmark = pytest.mark.order

Change = Callable[[AsyncAgentService], Awaitable[object]]


async def worker(turn: Turn) -> AsyncIterator[str]:
    """`wait` takes until it is stopped; all else says which try it is."""
    if turn.text == "wait" and turn.attempt == 1:
        await asyncio.sleep(3600)
    await asyncio.sleep(0)
    yield f"try {turn.attempt}"


BRAINS: dict[str, roost.Brain] = {"worker": worker}


async def restart(service: AsyncAgentService) -> None:
    await service.agents.restart("ann", "d")


async def stop_and_start(service: AsyncAgentService) -> None:
    await service.agents.stop("ann", "d")
    await service.agents.start("ann", "d")


async def pause_and_resume(service: AsyncAgentService) -> None:
    await service.agents.pause("ann", "d")
    await service.agents.resume("ann", "d")


async def sleep_and_wake(service: AsyncAgentService) -> None:
    await service.agents.sleep("ann", "d", 0.0)


@pytest.mark.parametrize("change", [restart, stop_and_start, pause_and_resume, sleep_and_wake])
@pytest.mark.parametrize("attempts", [1, 3])
def test_what_waits_for_an_agent_that_is_moved_is_not_tried_by_that(
    world: World, change: Change, attempts: int
) -> None:
    begun: list[str] = []

    async def noting(turn: Turn) -> AsyncIterator[str]:
        begun.append(turn.text)
        async for text in worker(turn):
            yield text

    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="worker", max_attempts=attempts)
        sent = []
        for number in range(24):
            sent.append(await service.tasks.send("ann", "d", f"do {number}"))
            if number % 6 == 5:
                await change(service)
        over = [await service.tasks.wait("ann", task, 20.0) for task in sent]
        cut_off = [task for task in over if task.status != "done"]
        assert {task.prompt for task in cut_off} <= set(begun), "nobody has begun with it, and it is given up"
        assert len(cut_off) <= (4 if attempts == 1 else 0), "each move can cut off one"
        assert sum(task.result == "try 1" for task in over) >= len(sent) - 4

    world({"worker": noting}, story)


def test_one_that_may_do_more_at_once_does_so_at_once(world: World) -> None:
    async def story(service: AsyncAgentService) -> set[str]:
        await service.agents.create("ann", "d", profile="worker")
        sent = {await service.tasks.send("ann", "d", "wait") for _ in range(3)}
        await becomes(lambda: service.tasks.list("ann", status="running"), lambda running: len(running) == 1)
        await service.agents.configure("ann", "d", max_concurrent_tasks=5)
        running = await becomes(lambda: service.tasks.list("ann", status="running"), lambda found: len(found) > 2)
        return sent ^ {task.task_id for task in running}

    assert world(BRAINS, story) == set(), "all that was sent runs, and nothing else"


@pytest.mark.parametrize("change", [restart, stop_and_start])
def test_one_that_was_cut_off_by_a_stop_has_its_try_back(world: World, change: Change) -> None:
    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="worker", max_attempts=1)
        first = await service.tasks.send("ann", "d", "wait")
        await becomes(lambda: service.agents.get("ann", "d"), lambda agent: agent.state == "active")
        second = await service.tasks.send("ann", "d", "do")
        await change(service)
        assert (await service.tasks.cancel("ann", first)).status == "cancelled"
        over = await service.tasks.wait("ann", second, 20.0)
        assert (over.status, over.result, over.attempts) == ("done", "try 1", 1)

    world(BRAINS, story)


def test_a_crash_counts_nothing_as_tried(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path, 1)
    tries: list[int] = []

    async def noting(turn: Turn) -> AsyncIterator[str]:
        if turn.text == "wait":
            tries.append(turn.attempt)
            await asyncio.sleep(3600 if len(tries) == 1 else 0)
        yield f"try {turn.attempt}"

    brains: dict[str, roost.Brain] = {"worker": noting}

    async def before(service: AsyncAgentService) -> tuple[str, str, str]:
        await service.agents.create("ann", "d", profile="worker", max_attempts=1)
        begun = await service.tasks.send("ann", "d", "wait")
        await becomes(lambda: service.agents.get("ann", "d"), lambda agent: agent.state == "active")
        waits = await service.tasks.send("ann", "d", "do")
        letter = await service.mail.send("ann", "agent:d", "hello", "do", priority="urgent")
        return begun, waits, letter

    begun, waits, letter = simulation.run(before(simulation.start(brains)))
    simulation.crash()

    async def after(service: AsyncAgentService) -> None:
        ended = [await service.tasks.wait("ann", task, 20.0) for task in (begun, waits)]
        assert [(task.status, task.result, task.attempts) for task in ended] == [("done", "try 1", 1)] * 2
        await becomes(lambda: service.mail.get("ann", letter), lambda mail: mail.processed is not None)
        assert not await service.dead_letters.list("ann")

    simulation.run(after(simulation.start(brains)))
    assert tries == [1, 1]


@pytest.mark.parametrize("seed", range(5))
def test_the_pause_before_a_retry_doubles_and_has_jitter(tmp_path: Path, seed: int) -> None:
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
