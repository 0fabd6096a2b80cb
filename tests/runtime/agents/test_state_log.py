"""A2: the recorded states of an agent are one chain: each change begins where the one before has ended."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.core.agents.agent import MOVES, State
from tests.conftest import eventually
from tests.runtime.agents.test_agents import done, until
from tests.runtime.conftest import World, becomes, ended
from tests.runtime.conftest import until as until_so

pytestmark = pytest.mark.order

Told = list[tuple[str | None, str, str, str]]


async def busy(turn: Turn) -> AsyncIterator[str]:
    if turn.text == "late":
        await asyncio.sleep(0.3)
    if turn.text in ("sleep", "late"):
        await turn.sleep(wake_on=roost.event("never"))
    yield "done"


class Holds:
    """A brain that works on `long` until it may end."""

    def __init__(self) -> None:
        self.may_end = False

    async def __call__(self, turn: Turn) -> AsyncIterator[str]:
        if turn.text == "long":
            await until_so(lambda: self.may_end)
        yield "done"


async def course(service: AsyncAgentService, count: int) -> Told:
    """Return all changes, oldest first, once there are `count` of them."""
    changes = await becomes(lambda: service.agents.history("ann", "d"), lambda found: len(found) >= count)
    assert [one.at for one in changes] == sorted((one.at for one in changes), reverse=True)
    return [(c.before, c.after, c.cause, c.by) for c in reversed(changes)]


BEGUN = (None, "idle", "created", "user:ann")
WORKS = ("idle", "active", "task from user:ann", "roost")


def test_one_that_puts_itself_to_sleep_goes_from_its_work_to_sleep(world: World) -> None:
    async def story(service: AsyncAgentService) -> Told:
        await service.agents.create("ann", "d", profile="busy", idle_timeout=0.0)
        await done(service, "sleep")
        await until(service, lambda agent: agent.state == "sleeping")
        await service.agents.wake("ann", "d", "it is time")
        return await course(service, 4)

    assert world({"busy": busy}, story) == [
        BEGUN,
        WORKS,
        ("active", "sleeping", "asked for by its turn", "agent:ann/d"),
        ("sleeping", "idle", "it is time", "user:ann"),
    ]


def test_the_same_in_a_talk(world: World) -> None:
    async def story(service: AsyncAgentService) -> Told:
        await service.agents.create("ann", "d", profile="busy")
        talk = await service.create_talk_session("ann", agent="d")
        await service.add_message("ann", talk, "sleep")
        await ended(service, talk)
        return await course(service, 3)

    assert world({"busy": busy}, story) == [
        BEGUN,
        ("idle", "active", "talk from user:ann", "roost"),
        ("active", "sleeping", "asked for by its turn", "agent:ann/d"),
    ]


def test_one_that_is_put_to_sleep_or_stopped_while_it_works_goes_there_from_its_work(world: World) -> None:
    holds = Holds()

    async def story(service: AsyncAgentService) -> Told:
        await service.agents.create("ann", "d", profile="holds", idle_timeout=0.0)
        first = await service.tasks.send("ann", "d", "long")
        await until(service, lambda agent: agent.state == "active")
        await service.agents.sleep("ann", "d", wake_on=roost.event("never"))
        holds.may_end = True
        await service.tasks.wait("ann", first, timeout=20)
        await until(service, lambda agent: agent.state == "sleeping")
        await service.agents.wake("ann", "d")
        holds.may_end = False
        await service.tasks.send("ann", "d", "long")
        await until(service, lambda agent: agent.state == "active")
        await service.agents.stop("ann", "d")
        await service.tasks.cancel("ann", (await service.tasks.list("ann"))[0].task_id)
        await service.agents.start("ann", "d")
        await done(service, "short")
        return await course(service, 9)

    told = world({"holds": holds}, story)
    assert [after for _, after, _, _ in told] == [
        "idle",
        "active",
        "sleeping",
        "idle",
        "active",
        "stopped",
        "idle",
        "active",
        "idle",
    ]
    assert all(before == after for (_, after, _, _), (before, _, _, _) in pairwise(told))
    assert all(after in MOVES[State(before)] for before, after, _, _ in told if before is not None)


RESTS = ("active", "idle", "nothing left to do", "roost")


def test_each_change_between_active_and_idle_is_recorded(simulated: World) -> None:
    """Also while it stays awake, for which it has minutes."""

    async def story(service: AsyncAgentService) -> tuple[Told, Told]:
        await service.agents.create("ann", "d", profile="busy", idle_timeout=300.0)
        for _ in range(4):
            await done(service, "do")
            await asyncio.sleep(2.0)
        apart = await course(service, 9)
        for _ in range(4):
            await done(service, "do")
        await asyncio.sleep(2.0)
        return apart, await course(service, 11)

    apart, together = simulated({"busy": busy}, story)
    assert apart == [BEGUN, *[WORKS, RESTS] * 4]
    assert together == [*apart, WORKS, RESTS], "a pause that nobody could have noticed is not on record"


@pytest.mark.parametrize("prompts", [("sleep", "short"), ("short", "sleep"), ("sleep", "sleep"), ("sleep", "late")])
def test_nothing_that_ends_beside_it_is_recorded_after_one_fell_asleep(world: World, prompts: tuple[str, str]) -> None:
    first: list[asyncio.Event] = []

    async def together(turn: Turn) -> AsyncIterator[str]:
        if not first:
            first.append(asyncio.Event())
            await first[0].wait()
        first[0].set()
        async for word in busy(turn):
            yield word

    async def story(service: AsyncAgentService) -> Told:
        await service.agents.create("ann", "d", profile="together", max_concurrent_tasks=2, idle_timeout=0.0)
        tasks = [await service.tasks.send("ann", "d", prompt) for prompt in prompts]
        for task in tasks:
            await service.tasks.wait("ann", task, timeout=20)
        await until(service, lambda agent: agent.state == "sleeping" and not agent.current_tasks)
        await becomes(lambda: awake(service), lambda there: not there)
        await service.agents.wake("ann", "d", "it is time")
        return await course(service, 4)

    assert world({"together": together}, story) == [
        BEGUN,
        WORKS,
        ("active", "sleeping", "asked for by its turn", "agent:ann/d"),
        ("sleeping", "idle", "it is time", "user:ann"),
    ]


async def awake(service: AsyncAgentService) -> bool:
    hall = service.roost.dispatcher
    return hall.is_awake("ann/d") or bool(hall.leaving)


async def reluctant(turn: Turn) -> AsyncIterator[str]:
    try:
        yield "begun"
        await asyncio.sleep(3_600)
    finally:
        await asyncio.sleep(0.1)


def test_how_one_ends_that_was_deleted_is_no_change_of_another_with_its_name(world: World) -> None:
    async def story(service: AsyncAgentService) -> Told:
        await service.agents.create("ann", "d", profile="reluctant", idle_timeout=0.0)
        await service.tasks.send("ann", "d", "go")
        await until(service, lambda agent: agent.state == "active")
        await service.agents.delete("ann", "d")
        await service.agents.create("ann", "d", profile="reluctant")
        await becomes(lambda: awake(service), lambda there: not there)
        await service.agents.stop("ann", "d")
        return await course(service, 2)

    assert world({"reluctant": reluctant}, story) == [BEGUN, ("idle", "stopped", "stopped", "user:ann")]


def test_one_that_blocks_its_loop_while_it_is_stopped_stays_stopped_on_record(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    async def blocks(turn: Turn) -> AsyncIterator[str]:
        begun.set()
        go_on.wait(10)
        yield "done"

    with roost.open(f"sqlite:///{tmp_path / 'roost.db'}", brains={"blocks": blocks}) as service:
        service.agents.create("ann", "d", profile="blocks")
        service.tasks.send("ann", "d", "go")
        assert begun.wait(10)
        service.agents.stop("ann", "d")
        go_on.set()
        eventually(lambda: not service.roost.dispatcher.leaving)
        service.agents.start("ann", "d")
        found = [str(one.after) for one in reversed(service.agents.history("ann", "d"))]
    assert found[:4] == ["idle", "active", "stopped", "idle"]


def test_that_it_was_paused_and_resumed_is_on_record_once_each(world: World) -> None:
    holds = Holds()

    async def story(service: AsyncAgentService) -> Told:
        await service.agents.create("ann", "d", profile="holds", idle_timeout=0.0)
        task = await service.tasks.send("ann", "d", "long")
        await until(service, lambda agent: agent.state == "active")
        for _ in range(2):
            await service.agents.pause("ann", "d")
        holds.may_end = True
        await service.tasks.wait("ann", task, timeout=20)
        await course(service, 4)
        for _ in range(2):
            await service.agents.resume("ann", "d")
        return await course(service, 5)

    assert world({"holds": holds}, story) == [
        BEGUN,
        WORKS,
        ("active", "active", "paused", "user:ann"),
        ("active", "idle", "nothing left to do", "roost"),
        ("idle", "idle", "resumed", "user:ann"),
    ]


def test_one_that_works_when_roost_closes_is_idle_on_record_also_if_more_waits(world: World) -> None:
    async def works(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="endless")
        for _ in range(2):
            await service.tasks.send("ann", "d", "work")
        await until(service, lambda agent: agent.state == "active")

    async def endless(turn: Turn) -> AsyncIterator[str]:
        await asyncio.sleep(1_000)
        yield "done"

    world({"endless": endless}, works)
    told = world({}, lambda service: course(service, 3))
    assert told == [BEGUN, WORKS, ("active", "idle", "begins nothing new", "roost")]


def test_a_history_is_read_in_pages(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[str], list[str]]:
        await service.agents.create("ann", "d", profile="busy")
        for _ in range(3):
            await service.agents.stop("ann", "d")
            await service.agents.start("ann", "d")
        whole = [one.change_id for one in await service.agents.history("ann", "d")]
        pages: list[str] = []
        while page := await service.agents.history("ann", "d", limit=2, before=pages[-1] if pages else None):
            pages += [one.change_id for one in page]
        return whole, pages

    whole, pages = world({"busy": busy}, story)
    assert pages == whole
    assert len(set(whole)) == 7
