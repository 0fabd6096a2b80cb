"""Agents: messages between them, how many there can be, timers."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import roost
from bench.figures import Figure, bench, percentile
from roost.core.schedules.schedule import Fired

AUTOGEN_ONE_WAY = 11_800
"""Messages a second of AutoGen core, in memory, on the machine the goals were made on."""


class Counter:
    """Counts what was handled, and tells when it is enough."""

    def __init__(self) -> None:
        self.count = 0
        self.expected = 0
        self.reached = threading.Event()
        self._lock = threading.Lock()

    def expect(self, count: int) -> None:
        self.count, self.expected = 0, count
        self.reached.clear()

    async def sink(self, turn: roost.Turn) -> AsyncIterator[str]:
        with self._lock:
            self.count += 1
            if self.count == self.expected:
                self.reached.set()
        yield ""


def settled(service: roost.AgentService, *agents: str) -> None:
    """Wait until nothing is in their inboxes: what was handled is committed."""
    while any(one.queue_depth for one in service.agents.list("ann", limit=1_000) if one.agent_id in agents):
        time.sleep(0.005)  # a look costs some of what is measured


@bench("one-way")
def one_way(folder: Path) -> Iterator[Figure]:
    """One agent sends to another, as fast as it can; until all of it is handled and committed."""
    rate, count = one_way_per_second(f"sqlite:///{folder}/one-way.db")
    yield Figure("one_way_two_agents", rate, "msg/s", count, 2.5 * AUTOGEN_ONE_WAY, more_is_better=True)


def one_way_per_second(url: str, rounds: int = 40) -> tuple[float, int]:
    counter, burst, seconds = Counter(), 500, 0.0

    async def source(turn: roost.Turn) -> AsyncIterator[str]:
        for number in range(int(turn.text)):
            await turn.send("agent:sink", f"message {number}")
        yield ""

    brains: dict[str, Any] = {"source": source, "sink": counter.sink}
    with roost.open(url, brains=brains) as service:
        service.agents.create("ann", "source", profile="source", max_concurrent_tasks=1)
        service.agents.create("ann", "sink", profile="sink", inbox_limit=1_000_000)
        for count in (burst, burst * rounds):  # the first time to get warm
            counter.expect(count)
            start = time.perf_counter()
            for _ in range(count // burst):
                service.tasks.send("ann", "source", str(burst))
            assert counter.reached.wait(120), f"{counter.count:,} of {count:,} messages arrived"
            settled(service, "sink")
            seconds = time.perf_counter() - start
    return burst * rounds / seconds, burst * rounds


@bench("one-way-100")
def one_way_100(folder: Path) -> Iterator[Figure]:
    """A hundred agents, a thread each: each sends to the next ones."""
    counter, agents, each = Counter(), 100, 200

    async def node(turn: roost.Turn) -> AsyncIterator[str]:
        if turn.text.startswith("go"):
            number = int(str(turn.agent_id))
            for step in range(each):
                await turn.send(f"agent:{(number + step + 1) % agents}", "message")
        else:
            async for text in counter.sink(turn):
                yield text

    brains: dict[str, Any] = {"node": node}
    with roost.open(f"sqlite:///{folder}/one-way.db", brains=brains) as service:
        service.agents.create_many(
            "ann", [str(number) for number in range(agents)], profile="node", inbox_limit=1_000_000
        )
        seconds = 0.0

        async def start_all() -> None:
            send = service.asynchronous.tasks.send
            await asyncio.gather(*(send("ann", str(number), "go") for number in range(agents)))

        for _ in range(2):
            counter.expect(agents * each)
            start = time.perf_counter()
            asyncio.run(start_all())
            assert counter.reached.wait(120), f"{counter.count:,} of {agents * each:,} messages arrived"
            settled(service, *(str(number) for number in range(agents)))
            seconds = time.perf_counter() - start
        count = agents * each
        goal = 1.5 * AUTOGEN_ONE_WAY
        yield Figure("one_way_100_agents", count / seconds, "msg/s", count, goal, more_is_better=True)


def _resident() -> float:
    """MiB of RAM that this process has."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


@bench("many-agents")
def many_agents(folder: Path) -> Iterator[Figure]:
    """A million agents in one store: opened, listed, and some of them woken."""
    count, url = 1_000_000, f"sqlite:///{folder}/many.db"

    async def worker(turn: roost.Turn) -> AsyncIterator[str]:
        yield "done"

    brains: dict[str, Any] = {"worker": worker}
    with roost.open(url, brains=brains) as service:
        start = time.perf_counter()
        for first in range(0, count, 10_000):
            service.agents.create_many("ann", [f"a{n:07}" for n in range(first, first + 10_000)], profile="worker")
        yield Figure("agents_made", time.perf_counter() - start, "s", count)
    before = _resident()
    start = time.perf_counter()
    with roost.open(url, brains=brains) as service:
        yield Figure("agents_opened", (time.perf_counter() - start) * 1e3, "ms", count, 100)
        start = time.perf_counter()
        page = service.agents.list("ann", after="a0500000")
        yield Figure("agents_listed", (time.perf_counter() - start) * 1e3, "ms", len(page))
        times = []
        for number in range(300):
            start = time.perf_counter()
            task = service.tasks.send("ann", f"a{number * 3_331:07}", "hello")
            assert service.tasks.wait("ann", task, timeout=10).status == "done"
            times.append((time.perf_counter() - start) * 1e3)
        yield Figure("agents_woken_p50", percentile(times, 50), "ms", len(times))
        yield Figure("agents_woken_p99", percentile(times, 99), "ms", len(times), 10)
        yield Figure("agents_memory", _resident() - before, "MiB", count, 50)


@bench("awake")
def awake(folder: Path) -> Iterator[Figure]:
    """5,000 agents awake at once, each with its thread and loop."""
    count, release = 5_000, threading.Event()
    begun, lock = 0, threading.Lock()

    async def holds(turn: roost.Turn) -> AsyncIterator[str]:
        nonlocal begun
        with lock:
            begun += 1
        while not release.is_set():  # noqa: ASYNC110 — it is set on another thread
            await asyncio.sleep(5)
        yield ""

    brains: dict[str, Any] = {"holds": holds}
    limits = roost.Limits(drain=0.2, stop_patience=0.2)
    with roost.open(f"sqlite:///{folder}/awake.db", brains=brains, limits=limits) as service:
        ids = [str(number) for number in range(count)]
        service.agents.create_many("ann", ids, profile="holds")
        before, start = _resident(), time.perf_counter()

        async def send() -> None:
            tasks = service.asynchronous.tasks
            await asyncio.gather(*(tasks.send("ann", agent, "hold") for agent in ids))

        asyncio.run(send())
        while begun < count and time.perf_counter() - start < 120:
            time.sleep(0.01)
        seconds = time.perf_counter() - start
        yield Figure("awake_agents", begun, "agents", count, count, more_is_better=True)
        yield Figure("awake_agent_time", seconds / count * 1e3, "ms", count, 0.5)
        yield Figure("awake_agent_memory", (_resident() - before) * 1024 / count, "KiB", count, 40)
        release.set()


def _lateness_of_commits(service: roost.AgentService, due: float) -> list[float]:
    """Return the list to which the lateness of each fired timer will be added, when its envelope is committed."""
    found: list[float] = []
    deliver = service.roost.timers._fired

    def delivered(late: float | None, fired: Fired) -> None:
        found.extend([time.time() - due] * len(fired.posted))
        deliver(late, fired)

    service.roost.timers._fired = delivered  # type: ignore[method-assign]
    return found


@bench("timers")
def timers(folder: Path) -> Iterator[Figure]:
    """10,000 schedules of as many agents, all due at one instant."""
    counter, count = Counter(), 10_000
    counter.expect(count)
    brains: dict[str, Any] = {"sink": counter.sink}
    with roost.open(f"sqlite:///{folder}/timers.db", brains=brains) as service:
        ids = [f"a{number:05}" for number in range(count)]
        service.agents.create_many("ann", ids, profile="sink")
        due = time.time() + 12.0
        for agent in ids:
            service.schedules.create("ann", agent, "tick", at=datetime.fromtimestamp(due, UTC))
        lateness = _lateness_of_commits(service, due)
        assert time.time() < due - 0.5, "the schedules were not made in time"
        time.sleep(due - time.time())
        assert counter.reached.wait(60), f"{counter.count:,} of {count:,} timers were handled"
        handled = time.time() - due
        assert counter.count == len(lateness) == count, (counter.count, len(lateness), handled)
        yield Figure("timers_late_p99", percentile(lateness, 99), "s", count, 0.25)
        yield Figure("timers_all_handled", handled, "s", count, 1.0)
