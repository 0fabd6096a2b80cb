"""A15: figures are counted after the commit, kept in the store, sampled and rolled up in the background."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from roost import AsyncAgentService, Turn
from roost.core.monitoring.figures import DAY, HOUR, EdgeCount, FigureName, FigureReport
from roost.errors import Invalid, Unavailable
from roost.runtime import figures as keeping
from roost.stores.sql import figures
from tests.runtime.conftest import World, becomes, ended


async def worker(turn: Turn) -> AsyncIterator[str]:
    """`fail` fails, `hold` takes half a minute, `tell X` sends plain messages to X."""
    if turn.text.startswith("tell "):
        for _ in range(3):
            await turn.send(f"agent:{turn.text.removeprefix('tell ')}", "hello")
    if turn.text == "fail":
        raise ValueError("as asked")
    if turn.text == "hold":
        await asyncio.sleep(35)
    yield "done"


BRAINS = {"worker": worker}
FAST: dict[str, Any] = {"max_attempts": 1, "retry_delay": 0.01}


async def report(service: AsyncAgentService, name: str | None = None, back: float = 600.0) -> FigureReport:
    now = service.roost.context.host.clock.now()
    return await service.monitor.figures("ann", since=now - back, until=now + 60, name=name)


async def counted(service: AsyncAgentService, name: str) -> dict[str, int]:
    return {one.label: one.count for one in (await report(service, name)).series}


async def done(service: AsyncAgentService, agent: str, prompt: str) -> None:
    await service.tasks.wait("ann", await service.tasks.send("ann", agent, prompt), timeout=60)


def test_what_agents_and_talks_do_is_counted_with_its_durations(simulated: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        for name in ("d", "e"):
            await service.agents.create("ann", name, profile="worker", **FAST)
        for prompt in ("hello", "fail", "tell e"):
            await done(service, "d", prompt)
        await service.mail.send("ann", "agent:d", "subject", "words")
        await service.mail.send("ann", "user:ann", "subject", "words", sender="agent:d")
        talk = await service.create_talk_session("ann", profile="worker")
        await service.add_message("ann", talk, "hello")
        await ended(service, talk)
        runs = await becomes(lambda: counted(service, "runs"), lambda found: sum(found.values()) == 8)
        assert runs == {"talk": 1, "task": 3, "mail": 1, "message": 3}
        assert await counted(service, "waited") == runs
        assert await counted(service, "errors") == {"internal": 1}
        assert await counted(service, "dead_letters") == {"task": 1}
        assert (await counted(service, "changes"))["AgentCreated"] == 2
        assert sum(sum(point.bins) for one in (await report(service, "runs")).series for point in one.points) == 8
        now = service.roost.context.host.clock.now()
        assert await service.monitor.edges("ann", since=now - 600) == [
            EdgeCount("user:ann", "agent:ann/d", 4),
            EdgeCount("agent:ann/d", "agent:ann/e", 3),
            EdgeCount("agent:ann/d", "user:ann", len(await service.mail.inbox("ann", "user:ann"))),
        ]
        assert await service.monitor.edges("bob", since=now - 600) == []

    simulated(BRAINS, story)


def test_queues_and_states_are_sampled_while_something_happens(simulated: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        for name in ("d", "e"):
            await service.agents.create("ann", name, profile="worker", **FAST)
        await service.agents.sleep("ann", "e", HOUR)
        await asyncio.sleep(20)
        await service.tasks.send("ann", "d", "hold")
        await service.tasks.send("ann", "d", "after it")
        await asyncio.sleep(60)
        found = await report(service, "agents")
        states = {one.label: [point.total for point in one.points] for one in found.series}
        assert states["active"] == [1.0] * 3
        assert set(states["sleeping"]) == set(states["idle"]) == {1.0}
        queue = {one.label: [point.total for point in one.points] for one in (await report(service, "queue")).series}
        assert max(queue[""]) == 2.0
        assert queue[""][-1] == 0.0
        before = len(states["sleeping"])
        await asyncio.sleep(60)
        found = await report(service, "agents")
        assert [len(one.points) for one in found.series if one.label == "sleeping"] == [before], "nothing happens"

    simulated(BRAINS, story)


def test_of_many_users_all_are_sampled_in_turns(simulated: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "USERS", 2)
    users = [f"user{number}" for number in range(4)]

    async def story(service: AsyncAgentService) -> None:
        start = service.roost.context.host.clock.now()
        for user in users:
            await service.agents.create(user, "d", profile="worker", **FAST)
            await service.tasks.send(user, "d", "hold")
            await service.tasks.send(user, "d", "after it")
        await asyncio.sleep(120)
        sampled = {}
        for user in users:
            found = await service.monitor.figures(user, since=start - 10, until=start + 120, name="queue")
            sampled[user] = [point.total for one in found.series for point in one.points if one.label == ""]
        assert all(max(depths) > 0 for depths in sampled.values()), sampled
        assert all(depths[-1] == 0.0 for depths in sampled.values()), sampled

    simulated(BRAINS, story)


def test_figures_are_rolled_up_and_their_sums_stay(simulated: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="worker")
        keeper = service.roost.figures
        for _ in range(3):
            await done(service, "d", "hello")
            await asyncio.sleep(20)
        assert await counted(service, "runs") == {"task": 3}
        for age in (2 * HOUR, 2 * DAY, 20 * DAY):
            await asyncio.sleep(age)
            await keeper.roll_up()
            found = await report(service, "runs", back=31 * DAY)
            assert [(one.label, one.count) for one in found.series] == [("task", 3)]
        rows = await service.roost.context.store.read(lambda tx: tx.read("SELECT DISTINCT width FROM figures"))
        assert [row[0] for row in rows] == [900]
        await asyncio.sleep(20 * DAY)
        await keeper.roll_up()
        assert (await report(service, None, back=90 * DAY)).series == ()

    simulated(BRAINS, story)


def test_counts_are_kept_while_the_store_cannot_be_written(simulated: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="worker")
        with monkeypatch.context() as broken:

            def fail(*_: object) -> None:
                raise Unavailable("the disk is full")

            broken.setattr(figures, "add", fail)
            await done(service, "d", "hello")
            await asyncio.sleep(30)
            assert await counted(service, "runs") == {}
        assert await becomes(lambda: counted(service, "runs")) == {"task": 1}

    simulated(BRAINS, story)


def test_what_was_counted_last_is_written_when_roost_closes(simulated: World) -> None:
    async def work(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="worker")
        await done(service, "d", "hello")

    async def look(service: AsyncAgentService) -> None:
        assert await counted(service, "runs") == {"task": 1}

    simulated(BRAINS, work)
    simulated(BRAINS, look)


def test_nothing_of_a_deleted_user_is_written(simulated: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="worker")
        await done(service, "d", "hello")
        await asyncio.sleep(20)
        await done(service, "d", "hello")
        await service.users.delete("root", "ann")
        await asyncio.sleep(30)
        rows = await service.roost.context.store.read(lambda tx: tx.read("SELECT user_id FROM figures"))
        assert not rows

    simulated(BRAINS, story)


def test_a_report_refuses_what_it_cannot_show(simulated: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        now = service.roost.context.host.clock.now()
        wrong: dict[str, Any]
        for wrong in (
            {"since": now, "until": now - 1},
            {"since": now - 30 * DAY, "width": 900.0},
            {"since": now - 60, "width": 0.0},
            {"since": now - 60, "name": "nothing"},
        ):
            with pytest.raises(Invalid):
                await service.monitor.figures("ann", **wrong)
        wide = await service.monitor.figures("ann", since=now - 2 * HOUR, width=1.0)
        assert wide.width == 60, "narrower ones are not kept for so long"
        assert wide.until - wide.since >= timedelta(hours=2)
        assert (await service.monitor.figures("ann", since=now - 60)).of(FigureName.RUNS) == ()

    simulated(BRAINS, story)
