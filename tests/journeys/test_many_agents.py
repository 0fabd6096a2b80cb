"""A3: agents that rest cost a row each; those that are awake, a thread and little more.

Each runs at a size that is quick everywhere, and with `make soak` at the size that is promised.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from random import random

import pytest

import roost
from tests.conftest import Open, eventually


def sizes(quick: int, promised: int) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("many", [quick, pytest.param(promised, marks=pytest.mark.soak)])


def resident() -> float:
    """MiB of RAM that this process has."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


async def worker(turn: roost.Turn) -> AsyncIterator[str]:
    yield f"done {turn.text}"


@pytest.mark.timeout(300)
@sizes(30_000, 1_000_000)
def test_a_million_agents_are_opened_listed_and_woken(service: Open, many: int) -> None:
    brains: dict[str, roost.Brain] = {"worker": worker}
    with service(brains=brains) as home:
        for first in range(0, many, 10_000):
            home.agents.create_many("ann", [f"a{n:07}" for n in range(first, first + 10_000)], profile="worker")
    before, start = resident(), time.perf_counter()
    with service(brains=brains) as home:
        opened = time.perf_counter() - start
        page = home.agents.list("ann", after="a0019999")
        waits: list[float] = []
        for number in range(0, many, many // 50):
            start = time.perf_counter()
            task = home.tasks.send("ann", f"a{number:07}", str(number))
            assert home.tasks.wait("ann", task, timeout=10).result == f"done {number}"
            waits.append(time.perf_counter() - start)
        grown = resident() - before
    assert [agent.agent_id for agent in page[:2]] == ["a0020000", "a0020001"]
    assert opened < 1, "it reads no agent before one is asked for"
    assert sorted(waits)[len(waits) // 2] < 0.25, "one is found among a million as fast as among ten"
    assert grown < 50, "idle agents are not in RAM"


@pytest.mark.timeout(240)
@sizes(300, 5_000)
def test_thousands_of_agents_are_awake_at_once(service: Open, many: int) -> None:
    release, lock = threading.Event(), threading.Lock()
    threads: set[int] = set()

    async def holds(turn: roost.Turn) -> AsyncIterator[str]:
        with lock:
            threads.add(threading.get_ident())
        while not release.is_set():  # noqa: ASYNC110 — it is set on another thread
            await asyncio.sleep(many / 1_000 + random())
        yield "held"

    ids = [f"a{number:04}" for number in range(many)]
    with service(brains={"holds": holds}, limits=roost.Limits(drain=20.0)) as home:
        home.agents.create_many("ann", ids, profile="holds")

        async def send() -> list[str]:
            tasks = home.asynchronous.tasks
            return await asyncio.gather(*(tasks.send("ann", agent, "hold") for agent in ids))

        tasks = asyncio.run(send())
        eventually(lambda: len(threads) == many, 60)  # each has a thread of its own
        release.set()
        assert all(home.tasks.wait("ann", task, timeout=60).result == "held" for task in tasks)


@pytest.mark.timeout(240)
@sizes(500, 10_000)
@pytest.mark.parametrize("kind", ["schedules", "sleepers"])
def test_thousands_of_timers_of_one_instant_each_come_once(service: Open, kind: str, many: int) -> None:
    """Ticks of schedules, or times until which agents sleep: those find a task when they wake."""
    lock, handled = threading.Lock(), [0]

    async def counts(turn: roost.Turn) -> AsyncIterator[str]:
        with lock:
            handled[0] += 1
        yield "counted"

    ids = [f"a{number:05}" for number in range(many)]
    with service({"counts": counts}) as home:
        home.agents.create_many("ann", ids, profile="counts")
        due = datetime.now(UTC) + timedelta(seconds=5 + many / 500)

        async def set_timers() -> None:
            everything = home.asynchronous
            for start in range(0, many, 1_000):
                part = ids[start : start + 1_000]
                if kind == "schedules":
                    await asyncio.gather(*(everything.schedules.create("ann", one, "tick", at=due) for one in part))
                else:
                    await asyncio.gather(*(everything.agents.sleep("ann", one, until=due) for one in part))
                    await asyncio.gather(*(everything.tasks.send("ann", one, "wake up") for one in part))

        asyncio.run(set_timers())
        assert datetime.now(UTC) < due, "they were not set in time"
        assert handled == [0]
        eventually(lambda: handled[0] >= many, 60)
        tasks: list[roost.Task] = []
        while page := home.tasks.list("ann", limit=1_000, before=tasks[-1].task_id if tasks else None):
            tasks += page
        assert sorted(task.agent_id for task in tasks) == ids
        assert handled == [many]
        if kind == "sleepers":
            assert {agent.wake_reason for agent in home.agents.list("ann", limit=1_000)} == {"time"}
