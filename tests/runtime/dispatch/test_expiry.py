"""A4, A10: work that has not begun in time expires, whatever its agent does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Turn
from tests.runtime.agents.test_agents import FAST, teller
from tests.runtime.conftest import World, becomes

pytestmark = pytest.mark.order

BRAINS: dict[str, Any] = {"teller": teller}


async def given_up(service: AsyncAgentService, task_id: str) -> tuple[str, str | None]:
    """Wait until the task is over; its status and error. Check that it was given up soon after it had expired."""
    task = await service.tasks.wait("ann", task_id, timeout=20)
    assert task.ended is not None
    assert task.expires is not None
    assert task.ended - task.expires < timedelta(seconds=5)
    return task.status, task.error


GIVEN_UP = ("expired", "it was not begun before it expired")


@pytest.mark.parametrize("state", ["sleeping", "stopped", "paused"])
def test_a_task_of_an_agent_that_does_not_work_is_given_up_when_it_expires(world: World, state: str) -> None:
    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="teller", start=state != "stopped")
        if state == "sleeping":
            await service.agents.sleep("ann", "d", wake_on=roost.event("never"))
        if state == "paused":
            await service.agents.pause("ann", "d")
        later = await service.tasks.send("ann", "d", "later", expires_in=0.4)
        first = await service.tasks.send("ann", "d", "first", expires_in=0.2)
        kept = await service.tasks.send("ann", "d", "kept")
        assert [await given_up(service, task) for task in (first, later)] == [GIVEN_UP] * 2
        assert [letter.fault for letter in await service.dead_letters.list("ann")] == ["expired"] * 2
        agent = await service.agents.get("ann", "d")
        assert (agent.queue_depth, agent.error_count, agent.last_active) == (1, 0, agent.created)
        for wakes in (service.agents.start, service.agents.resume, service.agents.wake):
            await wakes("ann", "d")
        assert (await service.tasks.wait("ann", kept, timeout=20)).result == "task kept from user:ann, 1"

    world(BRAINS, story)


def test_a_task_behind_one_that_takes_long_is_given_up_when_it_expires(world: World) -> None:
    may_end: list[str] = []

    async def slow(turn: Turn) -> AsyncIterator[str]:
        while not may_end:  # noqa: ASYNC110 — another thread says so
            await asyncio.sleep(0.01)
        yield "done"

    async def story(service: AsyncAgentService) -> tuple[tuple[str, str | None], str]:
        await service.agents.create("ann", "d", profile="slow", **FAST)
        long = await service.tasks.send("ann", "d", "long", expires_in=60.0)
        behind = await service.tasks.send("ann", "d", "behind", expires_in=0.2)
        seen = await given_up(service, behind)
        may_end.append("now")
        return seen, (await service.tasks.wait("ann", long, timeout=20)).status

    assert world({"slow": slow}, story) == (GIVEN_UP, "done")


@pytest.mark.parametrize("state", ["awake", "asleep", "paused", "idle"])
def test_what_waits_for_another_try_is_given_up_when_it_expires(world: World, state: str) -> None:
    async def fails(turn: Turn) -> AsyncIterator[str]:
        if turn.text:
            raise ValueError
        yield ""

    async def story(service: AsyncAgentService) -> None:
        idle = 0.0 if state == "idle" else 60.0
        await service.agents.create("ann", "d", profile="fails", retry_delay=600.0, idle_timeout=idle)
        task = await service.tasks.send("ann", "d", "go", expires_in=2.0)
        await becomes(lambda: service.agents.get("ann", "d"), lambda agent: agent.error_count == 1)
        if state == "asleep":
            await service.agents.sleep("ann", "d", wake_on=roost.event("never"))
        if state == "paused":
            await service.agents.pause("ann", "d")
        assert await given_up(service, task) == ("expired", "it was tried once, and not again before it expired")
        next_one = await service.tasks.send("ann", "d", "next", expires_in=0.1, max_attempts=1)
        assert (await service.tasks.wait("ann", next_one, timeout=20)).is_over

    world({"fails": fails}, story)


def test_a_task_of_an_agent_with_an_unknown_profile_expires(world: World) -> None:
    async def before(service: AsyncAgentService) -> str:
        await service.agents.create("ann", "d", profile="teller", start=False)
        return await service.tasks.send("ann", "d", "later", expires_in=1.0)

    async def after(service: AsyncAgentService, task: str) -> tuple[str, str | None]:
        await service.agents.start("ann", "d")
        return await given_up(service, task)

    task = world(BRAINS, before)
    assert world({"another": teller}, lambda service: after(service, task)) == GIVEN_UP


def test_what_expires_while_nothing_runs_is_given_up_at_the_next_start(world: World) -> None:
    async def first(service: AsyncAgentService) -> str:
        await service.agents.create("ann", "d", profile="teller")
        await service.agents.sleep("ann", "d", wake_on=roost.event("never"))
        await service.mail.send("ann", "agent:d", "hello", "there", priority="low", expires_in=0.1)
        return await service.tasks.send("ann", "d", "hello", expires_in=0.1)

    async def second(service: AsyncAgentService) -> tuple[tuple[str, str | None], list[str], str]:
        seen = await given_up(service, task_id)
        kinds = sorted(str(letter.kind) for letter in await service.dead_letters.list("ann"))
        return seen, kinds, (await service.agents.get("ann", "d")).state

    task_id = world(BRAINS, first)
    assert world(BRAINS, second) == (GIVEN_UP, ["mail", "task"], "sleeping")
