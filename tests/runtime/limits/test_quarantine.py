"""The quarantine admits one run at a time, and a run that is gone blocks no other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

import roost
from roost.core.failures.faults import Fault
from roost.core.failures.suspicion import Suspicion
from roost.hosts.threads import ThreadHost
from roost.runtime.limits.quarantine import Quarantine
from roost.testing import Simulation
from tests.runtime.conftest import QUICK


def always() -> bool:
    return True


def test_one_is_admitted_at_a_time_in_order() -> None:
    async def scenario() -> None:
        quarantine = Quarantine(ThreadHost())
        assert await quarantine.enter("a", always)
        waiting = [asyncio.create_task(quarantine.enter(key, always)) for key in "bc"]
        await asyncio.wait(waiting, timeout=0)
        assert quarantine.count == 3
        quarantine.leave("a")
        assert await waiting[0]
        assert not waiting[1].done()
        quarantine.leave("b")
        assert await waiting[1]

    asyncio.run(scenario())


def test_one_that_is_cancelled_while_it_waits_does_not_keep_the_others_out() -> None:
    async def scenario() -> None:
        quarantine = Quarantine(ThreadHost())
        assert await quarantine.enter("a", always)
        cancelled, following = (asyncio.create_task(quarantine.enter(key, always)) for key in "bc")
        await asyncio.wait([cancelled, following], timeout=0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        quarantine.leave("a")
        assert await asyncio.wait_for(following, 10)

    asyncio.run(scenario())


def test_a_call_that_gives_up_takes_no_other_call_of_its_key_with_it() -> None:
    """A talk that was moved to another worker enters there, and its lane gives up where it was."""

    async def scenario() -> None:
        quarantine, wanted = Quarantine(ThreadHost()), [True]
        assert await quarantine.enter("a", always)
        old = asyncio.create_task(quarantine.enter("talk", lambda: wanted[0]))
        await asyncio.wait([old], timeout=0)
        quarantine.leave("talk")  # it was lost with its worker
        new = asyncio.create_task(quarantine.enter("talk", always))
        await asyncio.wait([new], timeout=0)
        wanted[0] = False
        assert not await old
        quarantine.leave("a")
        assert await asyncio.wait_for(new, 10)

    asyncio.run(scenario())


class Quarantined:
    """Tasks of several agents that were under way at two deaths of the process, and so are quarantined."""

    def __init__(self, folder: Path, limits: roost.Limits, *profiles: str) -> None:
        self.limits = limits
        self.is_slow = True
        self.at_once = self.most = 0
        self.brains: dict[str, roost.Brain] = dict.fromkeys(profiles, self.brain)
        self.simulation = Simulation(folder, seed=1)
        service = self.simulation.start(self.brains, limits)
        self.tasks = [self.simulation.run(self._send(service, name)) for name in profiles]
        for _ in range(2):
            self.simulation.advance(1.0)
            self.simulation.crash()
            service = self.simulation.start(self.brains, limits)
        self.is_slow = False
        self.service = service

    async def _send(self, service: roost.AsyncAgentService, name: str) -> str:
        await service.agents.create("ann", name, profile=name, idle_timeout=600.0, max_attempts=20, retry_delay=0.05)
        return await service.tasks.send("ann", name, "work")

    async def brain(self, turn: roost.Turn) -> AsyncIterator[str]:
        while self.is_slow:  # noqa: ASYNC110 — until the process has died twice
            await asyncio.sleep(1.0)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await asyncio.sleep(0.5)
        self.at_once -= 1
        yield "done"


def test_a_provider_that_is_down_is_waited_for_outside(tmp_path: Path) -> None:
    """The others in quarantine are done meanwhile, and a death of the process does not count for what waits."""
    limits = replace(QUICK, breaker_failures=1, breaker_pause=60.0)
    one = Quarantined(tmp_path, limits, "model", "other")
    service, shop = one.service, one.service.roost.context
    shop.breakers.record(shop.brains.profile("model"), Fault.PROVIDER)
    assert shop.breakers.open() == ["model"]

    async def story() -> None:
        assert (await service.tasks.wait("ann", one.tasks[1], timeout=20)).status == "done"
        assert (await service.tasks.get("ann", one.tasks[0])).status != "done"
        marks = await shop.store.read(lambda tx: [row[0] for row in tx.read("SELECT suspect FROM inbox")])
        assert marks == [Suspicion.QUARANTINED]
        assert (await service.tasks.wait("ann", one.tasks[0], timeout=120)).status == "done"

    one.simulation.run(story())
    assert one.most == 1
    one.simulation.crash()


def test_agents_that_leave_quarantine_respect_the_limit_of_awake_agents(tmp_path: Path) -> None:
    names = [f"agent{number}" for number in range(6)]
    one = Quarantined(tmp_path, replace(QUICK, awake_agents=2, warm_loops=1), *names)

    async def story() -> int:
        most = 0
        waiting = [asyncio.create_task(one.service.tasks.wait("ann", task, timeout=60)) for task in one.tasks]
        while not all(task.done() for task in waiting):
            most = max(most, one.service.health().awake)
            await asyncio.sleep(0.01)
        assert [(await task).status for task in waiting] == ["done"] * len(names)
        return most

    assert one.simulation.run(story()) <= 2
    assert one.most == 1
    one.simulation.crash()
