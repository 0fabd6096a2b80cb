"""A4: waiting for a task returns the task as it is stored, whether it was looked up or not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from roost import AsyncAgentService, LimitReached, NotFound, Turn
from roost.core.envelopes.tasks import Task
from tests.runtime.conftest import World, until
from tests.runtime.journal.test_approval_wait import SOON, waiting_task
from tests.runtime.journal.test_approvals import asked, paying

pytestmark = pytest.mark.order

tried: dict[str, int] = {}


async def does(turn: Turn) -> AsyncIterator[str]:
    """As the task says."""
    what, _, number = turn.text.partition(" ")
    if what == "wait":
        await asyncio.sleep(float(number))
    tried[turn.text] = tried.get(turn.text, 0) + 1
    if what == "fail" or (what == "stumble" and tried[turn.text] == 1):
        raise ValueError("it is so")
    yield f"did {turn.text}"


BRAINS = {"does": does}


async def send(service: AsyncAgentService, text: str, **how: object) -> str:
    tried.pop(text, None)
    return await service.tasks.send("ann", "d", text, **how)  # type: ignore[arg-type]


async def agent(service: AsyncAgentService) -> None:
    await service.agents.create("ann", "d", profile="does", max_attempts=2, retry_delay=0.05)


@pytest.mark.parametrize(
    ("text", "how", "status"),
    [
        ("plain", {}, "done"),
        ("urgent", {"priority": "urgent", "expires_in": 60.0, "key": "k"}, "done"),
        ("stumble", {}, "done"),
        ("fail", {"max_attempts": 1}, "failed"),
        ("fail", {}, "failed"),
        ("wait 0.2", {}, "done"),
    ],
)
def test_waiting_returns_the_task_as_it_is_stored(world: World, text: str, how: dict[str, object], status: str) -> None:
    async def scenario(service: AsyncAgentService) -> tuple[Task, Task, Task]:
        await agent(service)
        task = await send(service, text, **how)
        first, second = await asyncio.gather(*(service.tasks.wait("ann", task, timeout=20) for _ in range(2)))
        return first, second, await service.tasks.get("ann", task)

    first, second, kept = world(BRAINS, scenario)
    assert (first, second) == (kept, kept)
    assert kept.status == status


def test_waiting_ends_when_the_task_is_cancelled_or_expires_or_its_agent_is_deleted(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> list[str]:
        await agent(service)
        await service.agents.pause("ann", "d")
        cancelled, gone, unawaited = [await send(service, text) for text in ("cancelled", "gone", "unawaited")]
        expiring = await send(service, "expiring", expires_in=0.1)
        waits = [asyncio.create_task(service.tasks.wait("ann", one)) for one in (cancelled, expiring, gone)]
        await service.tasks.cancel("ann", cancelled)
        told = [(await asyncio.wait_for(one, 20.0)).status for one in waits[:2]]
        await service.agents.delete("ann", "d")
        with pytest.raises(NotFound):
            await asyncio.wait_for(waits[2], 20.0)
        with pytest.raises(NotFound):
            await asyncio.wait_for(service.tasks.wait("ann", unawaited), 20.0)
        return [str(status) for status in told]

    assert world(BRAINS, scenario) == ["cancelled", "expired"]


def test_a_task_that_was_suspended_keeps_its_first_start_time(world: World) -> None:
    brains, tools = paying([])

    async def scenario(service: AsyncAgentService) -> tuple[Task, Task]:
        task = await waiting_task(service)
        waits = asyncio.create_task(service.tasks.wait("ann", task, timeout=20))
        [approval] = await asked(service)
        await service.approvals.approve("ann", approval.approval_id)
        return await waits, await service.tasks.get("ann", task)

    told, kept = world(brains, scenario, limits=SOON, tools=tools)
    assert told == kept
    assert told.status == "done"


def test_a_user_cannot_wait_for_the_task_of_another_user(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> str:
        await agent(service)
        task = await send(service, "wait 0.3")
        with pytest.raises(NotFound):
            await service.tasks.wait("bob", task, timeout=20)
        return str((await service.tasks.wait("ann", task, timeout=20)).status)

    assert world(BRAINS, scenario) == "done"


def test_waiting_with_a_zero_timeout_returns_the_current_status(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> tuple[Task, timedelta]:
        await agent(service)
        await service.agents.pause("ann", "d")
        task = await send(service, "later")
        at_once = await service.tasks.wait("ann", task, timeout=0)
        soon = await service.tasks.wait("ann", task, timeout=0.05)
        assert (at_once.status, soon.status) == ("queued", "queued")
        await service.agents.resume("ann", "d")
        done = await service.tasks.wait("ann", task, timeout=20)
        assert done.ended is not None
        return done, done.ended - done.created

    done, took = world(BRAINS, scenario)
    assert done.status == "done"
    assert took < timedelta(seconds=10)


def test_waiting_returns_at_once_while_roost_closes(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> str:
        await service.agents.create("ann", "d", profile="does", start=False)
        task = await send(service, "later")
        service.roost.dispatcher.closing = True
        waited = await asyncio.wait_for(service.tasks.wait("ann", task), 4.0)
        service.roost.dispatcher.closing = False
        return str(waited.status)

    assert world(BRAINS, scenario) == "queued"


def test_waiting_returns_the_current_status_when_roost_closes(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> list[str]:
        await service.agents.create("ann", "d", profile="does", start=False)
        task = await send(service, "later")
        waits = [asyncio.create_task(service.tasks.wait("ann", task)) for _ in range(2)]
        waiters = service.roost.dispatcher.task_waiters
        await until(lambda: len(waiters._waiters.get(task, ())) == 2)
        closing = asyncio.create_task(service.close())
        told = [str((await asyncio.wait_for(one, 20.0)).status) for one in waits]
        await closing
        return told

    assert world(BRAINS, scenario) == ["queued", "queued"]


def test_what_is_refused_is_not_under_way(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> str:
        await service.agents.create("ann", "d", profile="does", inbox_limit=1, start=False)
        first = await send(service, "first", key="k")
        with pytest.raises(LimitReached):
            await send(service, "second")
        assert await send(service, "first", key="k") == first
        await service.agents.start("ann", "d")
        return str((await service.tasks.wait("ann", first, timeout=20)).status)

    assert world(BRAINS, scenario) == "done"


def test_a_task_retried_from_the_dead_letters_is_returned_as_stored(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> tuple[Task, Task]:
        await agent(service)
        task = await send(service, "stumble", max_attempts=1)
        assert (await service.tasks.wait("ann", task, timeout=20)).status == "failed"
        [letter] = await service.dead_letters.list("ann")
        await service.dead_letters.retry("ann", letter.letter_id)
        told = await service.tasks.wait("ann", task, timeout=20)
        return told, await service.tasks.get("ann", task)

    told, kept = world(BRAINS, scenario)
    assert told == kept
    assert told.result == "did stumble"
