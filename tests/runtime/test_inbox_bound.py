"""A12: an inbox takes as much as its limit says, whether its agent is awake or not; whoever sends more is told so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Conflict, LimitReached, Turn
from roost.runtime import activation, hall
from tests.runtime.conftest import World, becomes


async def busy(turn: Turn) -> AsyncIterator[str]:
    await asyncio.sleep(3600)
    yield ""


BRAINS: dict[str, roost.Brain] = {"busy": busy}


async def at_work(service: AsyncAgentService, **config: Any) -> None:
    """An agent that is awake, and does one thing for ever."""
    await service.agents.create("ann", "d", profile="busy", **config)
    await service.tasks.send("ann", "d", "go on")
    await becomes(lambda: service.agents.get("ann", "d"), lambda agent: agent.state == "active")


async def taken(sent: Awaitable[object]) -> bool:
    try:
        await sent
    except LimitReached:
        return False
    return True


async def depth(service: AsyncAgentService) -> int:
    return (await service.agents.get("ann", "d")).queue_depth


def test_what_was_cancelled_makes_room_while_the_agent_works(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await at_work(service, inbox_limit=4)
        waiting = [await service.tasks.send("ann", "d", "later") for _ in range(3)]
        with pytest.raises(LimitReached, match="the inbox of the agent 'd' is full"):
            await service.tasks.send("ann", "d", "too much")
        for task in waiting:
            await service.tasks.cancel("ann", task)
        await becomes(lambda: taken(service.tasks.send("ann", "d", "now")))
        assert await depth(service) == 2

    world(BRAINS, story)


def test_mail_that_does_not_wake_an_agent_counts_while_it_works(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await at_work(service, inbox_limit=3, wake_on_priority="high")
        sent = [await taken(service.mail.send("ann", "agent:d", "s", "b", priority="low")) for _ in range(4)]
        assert sent == [True, True, False, False]
        assert await depth(service) == 3

    world(BRAINS, story)


def test_what_has_no_room_in_memory_counts(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hall, "IN_MEMORY", 20)
    monkeypatch.setattr(hall, "SHARE", 10)
    monkeypatch.setattr(activation, "SHARE", 10)

    async def story(service: AsyncAgentService) -> None:
        await at_work(service, inbox_limit=30)
        sent = [await taken(service.tasks.send("ann", "d", "later")) for _ in range(40)]
        assert sent == [True] * 29 + [False] * 11
        assert await depth(service) == 30

    world(BRAINS, story)


def test_the_same_task_again_is_the_same_one_also_when_there_is_no_room(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await at_work(service, inbox_limit=2)
        once = await service.tasks.send("ann", "d", "once", key="k")
        assert not await taken(service.tasks.send("ann", "d", "too much"))
        assert not await taken(service.tasks.send("ann", "d", "too much", key="another"))
        assert await service.tasks.send("ann", "d", "once", key="k") == once
        with pytest.raises(Conflict, match="used for another task"):
            await service.tasks.send("ann", "d", "other", key="k")

    world(BRAINS, story)


def test_the_same_mail_again_is_the_same_one_also_when_there_is_no_room(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await at_work(service, inbox_limit=2)
        once = await service.mail.send("ann", "agent:d", "news", "once", key="k")
        assert not await taken(service.mail.send("ann", "agent:d", "news", "too much", key="another"))
        assert await service.mail.send("ann", "agent:d", "news", "once", key="k") == once
        with pytest.raises(Conflict, match="used for another mail"):
            await service.mail.send("ann", "agent:d", "news", "other", key="k")
        assert len(await service.mail.inbox("ann", "agent:d")) == 1

    world(BRAINS, story)
