"""A run that was cut off is recorded like any other: what it was, how long it took, and what it cost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from roost import AsyncAgentService, Task, Turn, Usage
from roost.core.journal.run_history import Run
from roost.stores.sql.tables import token_usage
from tests.runtime.agents.test_agents import done, until
from tests.runtime.conftest import World, becomes

pytestmark = pytest.mark.order


async def costly(turn: Turn) -> AsyncIterator[str]:
    turn.spend(Usage(600, 400, 0.25, "some:model"))
    yield "begun"
    if turn.text == "long":
        await asyncio.sleep(3_600)


async def begun(service: AsyncAgentService) -> str:
    await service.agents.create("ann", "d", profile="costly")
    task = await service.tasks.send("ann", "d", "long")
    await becomes(lambda: service.agents.inspect("ann", "d"), lambda seen: seen.running)
    return task


async def on_record(service: AsyncAgentService) -> Run:
    [run] = await becomes(lambda: service.runs.list("ann", agent="d"))
    entry = await service.runs.get("ann", run.run_id)
    assert (entry.usage, entry.text) == (Usage(600, 400, 0.25, "some:model"), "begun")
    shop = service.roost.context
    day = run.ended.date().isoformat()
    assert await shop.store.read(token_usage.tokens_used, day, "costly") == 1_000
    return run


def test_a_task_that_is_cancelled_while_it_runs_leaves_a_record(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[Run, Task, str | None]:
        task = await begun(service)
        await service.tasks.cancel("ann", task)
        run = await on_record(service)
        metrics = await service.monitor.metrics()
        assert metrics["roost_tokens_total"].values == {("costly", "input"): 600, ("costly", "output"): 400}
        return run, await service.tasks.get("ann", task), (await done(service, "short")).result

    run, task, after = world({"costly": costly}, story)
    assert (run.outcome, run.envelope_id, run.attempts) == ("stopped", task.task_id, 1)
    assert (task.status, task.attempts, task.started) == ("cancelled", 1, run.started)
    assert after == "begun"


@pytest.mark.parametrize("how", ["stop", "restart"])
def test_so_does_one_whose_agent_is_stopped_and_it_is_tried_again(world: World, how: str) -> None:
    async def story(service: AsyncAgentService) -> tuple[Run, str]:
        task = await begun(service)
        await getattr(service.agents, how)("ann", "d")
        run = await on_record(service)
        await service.agents.start("ann", "d")
        await until(service, lambda agent: agent.current_tasks == (task,))
        return run, task

    run, task = world({"costly": costly}, story)
    assert (run.outcome, run.fault, run.envelope_id, run.attempts) == ("stopped", None, task, 1)


def test_of_an_agent_that_is_deleted_nothing_is_left(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[Run]:
        await begun(service)
        await asyncio.sleep(0.01)
        await service.agents.delete("ann", "d")
        await service.agents.create("ann", "d", profile="costly")
        await done(service, "short")
        return await service.runs.list("ann")

    assert len(world({"costly": costly}, story)) == 1
