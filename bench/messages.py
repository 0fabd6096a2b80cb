"""Messages between agents: requests and their answers, one after the other and many at once, and broadcasts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import roost
from bench.agents import Counter, settled
from bench.figures import Figure, bench, percentile

AUTOGEN_REQUESTS = 6_500
AUTOGEN_BROADCAST = 21_300
"""Requests, and deliveries of broadcasts, a second of AutoGen core, in memory, where the goals were made."""


async def echo(turn: roost.Turn) -> AsyncIterator[str]:
    yield turn.text


@bench("requests")
def requests(folder: Path) -> Iterator[Figure]:
    """One agent asks another: each request after the answer to the one before, and a hundred at a time."""
    p50, rate, (alone, together) = requests_on(f"sqlite:///{folder}/requests.db")
    yield Figure("request_p50", p50, "ms", alone, 0.8)
    yield Figure("requests_100_in_flight", rate, "rt/s", together, 2.0 * AUTOGEN_REQUESTS, more_is_better=True)


def requests_on(url: str, alone: int = 1_000, rounds: int = 50) -> tuple[float, float, tuple[int, int]]:
    """Return the median of single requests in ms, requests per second of many, and how many there were."""
    times: list[float] = []
    at_once = 100

    async def asker(turn: roost.Turn) -> AsyncIterator[str]:
        times.clear()
        if turn.text == "alone":
            for number in range(alone):
                start = time.perf_counter()
                await turn.ask("agent:echo", f"request {number}")
                times.append((time.perf_counter() - start) * 1e3)
        else:
            for _ in range(rounds):
                start = time.perf_counter()
                asked = (turn.ask("agent:echo", f"request {number}") for number in range(at_once))
                assert await asyncio.gather(*asked) == [f"request {number}" for number in range(at_once)]
                times.append(time.perf_counter() - start)
        yield ""

    brains: dict[str, Any] = {"asker": asker, "echo": echo}
    with roost.open(url, brains=brains) as service:
        service.agents.create("ann", "asker", profile="asker")
        service.agents.create("ann", "echo", profile="echo")
        p50 = 0.0
        for _ in range(2):  # the first time to get warm
            _ask(service, "alone")
            p50 = percentile(times, 50)
            _ask(service, "together")
    return p50, rounds * at_once / sum(times), (alone, rounds * at_once)


def _ask(service: roost.AgentService, how: str) -> None:
    task = service.tasks.wait("ann", service.tasks.send("ann", "asker", how), timeout=120)
    assert task.status == "done", task.error


@bench("broadcast")
def broadcast(folder: Path) -> Iterator[Figure]:
    """One agent tells a hundred others, again and again; until all of it is handled and committed."""
    counter, agents, rounds = Counter(), 100, 100

    async def caller(turn: roost.Turn) -> AsyncIterator[str]:
        for number in range(rounds):
            assert await turn.broadcast(f"message {number}") == agents
        yield ""

    brains: dict[str, Any] = {"caller": caller, "sink": counter.sink}
    with roost.open(f"sqlite:///{folder}/broadcast.db", brains=brains) as service:
        ids = [f"s{number}" for number in range(agents)]
        service.agents.create("ann", "caller", profile="caller")
        service.agents.create_many("ann", ids, profile="sink")
        seconds, count = 0.0, agents * rounds
        for _ in range(3):  # the first times to get warm
            counter.expect(count)
            start = time.perf_counter()
            service.tasks.send("ann", "caller", "go")
            assert counter.reached.wait(120)
            settled(service, *ids)
            seconds = time.perf_counter() - start
        yield Figure("broadcast_100_agents", count / seconds, "msg/s", count, AUTOGEN_BROADCAST, more_is_better=True)
