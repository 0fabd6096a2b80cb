"""A12: a process above its RAM limit accepts no new work from people until it is below it again."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.testing import Simulation
from tests.runtime.conftest import becomes

LIMITS = roost.Limits(process_mib=100.0)


async def passes_on(turn: Turn) -> AsyncIterator[str]:
    if turn.text == "go":
        await asyncio.sleep(5)
        await turn.send("agent:e", "passed on")
    yield turn.text


def play(folder: Path, story: Callable[[Simulation, AsyncAgentService], Awaitable[Any]]) -> Any:
    simulation = Simulation(folder, seed=1)
    service = simulation.start({"passes": passes_on}, LIMITS)

    async def main() -> Any:
        async with service:
            await service.agents.create("ann", "d", profile="passes")
            await service.agents.create("ann", "e", profile="passes")
            return await story(simulation, service)

    return simulation.run(main())


def use(simulation: Simulation, mib: float) -> None:
    assert simulation.host is not None
    simulation.host.mib = mib


async def is_heavy(service: AsyncAgentService, heavy: bool) -> None:
    async def look() -> bool:
        return service.health().problem is not None

    await becomes(look, lambda found: found is heavy)


def test_new_work_is_refused_and_accepted_work_continues(tmp_path: Path) -> None:
    async def story(simulation: Simulation, service: AsyncAgentService) -> tuple[list[str], str | None, int]:
        talk = await service.create_talk_session("ann", profile="passes")
        under_way = await service.tasks.send("ann", "d", "go")
        use(simulation, 101.0)
        await is_heavy(service, True)
        refused = []
        for attempt in (
            service.tasks.send("ann", "d", "more"),
            service.mail.send("ann", "agent:d", "more", "more"),
            service.events.publish("ann", "more", optional=True),
            service.add_message("ann", talk, "more"),
        ):
            with pytest.raises(roost.LimitReached) as told:
                await attempt
            refused.append(str(told.value))
        done = await service.tasks.wait("ann", under_way, timeout=60)
        await becomes(lambda: service.agents.get("ann", "e"), lambda agent: agent.queue_depth == 0)
        return refused, done.result, len((await service.get_messages("ann", talk)).messages)

    refused, result, messages = play(tmp_path, story)
    assert set(refused) == {
        "the program uses 101 MiB of RAM, and 100 are allowed: it accepts no new work until some is done; try"
        " again in a moment"
    }
    assert (result, messages) == ("go", 0)


def test_it_takes_work_again_when_it_has_less(tmp_path: Path) -> None:
    async def story(simulation: Simulation, service: AsyncAgentService) -> str | None:
        use(simulation, 500.0)
        await is_heavy(service, True)
        use(simulation, 99.0)
        await is_heavy(service, False)
        return (await service.tasks.wait("ann", await service.tasks.send("ann", "d", "hello"), timeout=60)).result

    assert play(tmp_path, story) == "hello"


def test_idle_agents_release_their_ram(tmp_path: Path) -> None:
    async def story(simulation: Simulation, service: AsyncAgentService) -> tuple[int, int]:
        await service.tasks.wait("ann", await service.tasks.send("ann", "d", "hello"), timeout=60)
        before = service.roost.dispatcher.count
        use(simulation, 500.0)
        await is_heavy(service, True)
        await asyncio.sleep(1)
        return before, service.roost.dispatcher.count

    assert play(tmp_path, story) == (1, 0)


def test_the_ram_in_use_is_measured(tmp_path: Path) -> None:
    async def main() -> str:
        url = f"sqlite:///{tmp_path}/roost.db"
        async with await roost.aopen(
            url, brains={"passes": passes_on}, limits=roost.Limits(process_mib=1.0)
        ) as service:
            await is_heavy(service, True)
            return str(service.health().problem)

    assert "MiB of RAM, and 1 are allowed" in asyncio.run(main())


@pytest.mark.parametrize(("before", "after"), [(700, 50_000), (90_000, 90_000), (0, 0)])
def test_garbage_collection_is_less_frequent_by_default(tmp_path: Path, before: int, after: int) -> None:
    found = gc.get_threshold()
    try:
        gc.set_threshold(before, 10, 10)
        with roost.open(f"sqlite:///{tmp_path}/roost.db"):
            assert gc.get_threshold() == (after, 10, 10)
    finally:
        gc.set_threshold(*found)
