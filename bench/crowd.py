"""Fifty agents that are given tasks from outside: how many they do, and how late beside others that misbehave."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import roost
from bench.figures import Figure, bench, percentile

AGENTS, SECONDS = 50, 3.0


async def works(turn: roost.Turn) -> AsyncIterator[str]:
    yield "done"


async def burns(turn: roost.Turn) -> AsyncIterator[str]:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        pass
    yield "burned"


async def blocks(turn: roost.Turn) -> AsyncIterator[str]:
    time.sleep(SECONDS)  # noqa: ASYNC251 — what one must not do
    yield "blocked"


async def fails(turn: roost.Turn) -> AsyncIterator[str]:
    yield "begun"
    raise ValueError("at every message")


BAD: dict[str, roost.Brain] = {"burns": burns, "blocks": blocks, "fails": fails}


async def do(service: roost.AsyncAgentService, number: int, due: float) -> float:
    """Have a task done; how long after its moment."""
    task = await service.tasks.send("ann", f"w{number % AGENTS}", "work")
    assert (await service.tasks.wait("ann", task, timeout=30)).status == "done"
    return time.perf_counter() - due


async def alone(service: roost.AsyncAgentService, seconds: float) -> float:
    """Return how many they do in a second, each one after the other."""
    start = time.perf_counter()

    async def one_after_the_other(number: int) -> int:
        done = 0
        while time.perf_counter() < start + seconds:
            await do(service, number, start)
            done += 1
        return done

    done = await asyncio.gather(*(one_after_the_other(number) for number in range(AGENTS)))
    return sum(done) / (time.perf_counter() - start)


async def offered(service: roost.AsyncAgentService, rate: float) -> list[float]:
    """Return the latency of each task at a fixed rate of arrival."""
    start, under_way = time.perf_counter(), list[asyncio.Task[float]]()
    while (passed := time.perf_counter() - start) < SECONDS:
        for number in range(len(under_way), int(passed * rate)):
            under_way.append(asyncio.create_task(do(service, number, start + number / rate)))
        await asyncio.sleep(0.005)
    return await asyncio.gather(*under_way)


@bench("crowd")
def crowd(folder: Path) -> Iterator[Figure]:
    """Tasks of fifty agents alone, and half as many beside agents that are CPU-bound, block, and fail."""
    limits = roost.Limits(drain=0.2, stop_patience=0.2)
    with roost.open(f"sqlite:///{folder}/crowd.db", brains={**BAD, "works": works}, limits=limits) as service:
        service.agents.create_many("ann", [f"w{number}" for number in range(AGENTS)], profile="works")
        for name in BAD:
            service.agents.create("ann", name, profile=name, max_attempts=2, retry_delay=0.05)

        async def measure() -> tuple[float, list[float]]:
            await alone(service.asynchronous, 0.3)  # to get warm
            most = await alone(service.asynchronous, 2.0)
            for name in BAD:
                await service.asynchronous.tasks.send("ann", name, "go")
            return most, await offered(service.asynchronous, most / 2)

        most, late = asyncio.run(measure())
        yield Figure("tasks_50_agents", most, "tasks/s", round(most * 2), more_is_better=True)
        yield Figure("tasks_beside_bad_p99", percentile(late, 99), "s", len(late), 0.25)
