"""A6, A7: agents sleep until a condition is met, and wake for the right reason."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.testing import Simulation
from tests.runtime.agents.test_agents import done, teller, until
from tests.runtime.conftest import QUICK, World

pytestmark = pytest.mark.order

BRAINS: dict[str, Any] = {"teller": teller}


async def asleep(service: AsyncAgentService, agent_id: str = "d", **how: Any) -> roost.Agent:
    await service.agents.create("ann", agent_id, profile="teller")
    return await service.agents.sleep("ann", agent_id, **how)


async def awake(service: AsyncAgentService, agent_id: str = "d") -> str | None:
    """Wait until it wakes; why it did."""
    return (await until(service, lambda agent: agent.state == "idle", agent_id)).wake_reason


async def still_asleep(service: AsyncAgentService, agent_id: str = "d") -> bool:
    """Return whether it still sleeps although all work is done."""
    await service.agents.create("ann", f"{agent_id}-beside", profile="teller")
    task_id = await service.tasks.send("ann", f"{agent_id}-beside", "something else")
    assert (await service.tasks.wait("ann", task_id, timeout=20)).status == "done"
    return (await service.agents.get("ann", agent_id)).state == "sleeping"


def test_it_sleeps_for_a_duration_and_wakes_by_the_clock(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[str, bool, str | None]:
        before = await asleep(service, seconds=1.5)
        assert before.sleep_until is not None
        return before.state, await still_asleep(service), await awake(service)

    assert world(BRAINS, story) == ("sleeping", True, "time")


def test_it_sleeps_until_a_time_and_one_in_the_past_wakes_it_at_once(world: World) -> None:
    async def story(service: AsyncAgentService) -> str | None:
        await asleep(service, until=datetime(2024, 1, 1, 9, tzinfo=UTC))
        return await awake(service)

    assert world(BRAINS, story) == "time"


def test_three_seconds_are_three_seconds(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path, seed=1)
    service = simulation.start(BRAINS, QUICK)

    async def story() -> list[str]:
        await asleep(service, seconds=3)
        states: list[str] = []
        for pause in (2.9, 0.2):
            await asyncio.sleep(pause)
            states.append((await service.agents.get("ann", "d")).state)
        return states

    assert simulation.run(story()) == ["sleeping", "idle"]
    simulation.crash()


def test_an_event_wakes_only_agents_that_wait_for_it(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[str | None, bool, str | None]:
        both = roost.any_of(roost.event("data_ready"), roost.event("shutdown"))
        await asleep(service, wake_on=both)
        await asleep(service, "e", wake_on=roost.event("data_ready"))
        await service.events.publish("ann", "shutdown")
        first, sleeps_on = await awake(service), await still_asleep(service, "e")
        await service.events.publish("ann", "data_ready")
        return first, sleeps_on, await awake(service, "e")

    assert world(BRAINS, story) == ("event shutdown", True, "event data_ready")


def test_mail_wakes_from_the_priority_that_was_asked_for(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[bool, str | None]:
        await asleep(service, wake_on=roost.mail("high"))
        await service.mail.send("ann", "agent:d", "hello", "of little weight", priority="low")
        sleeps_on = await still_asleep(service)
        await service.mail.send("ann", "agent:d", "hello", "of great weight", priority="urgent")
        return sleeps_on, await awake(service)

    assert world(BRAINS, story) == (True, "mail high")


def test_mail_that_came_just_before_the_sleep_counts(world: World) -> None:
    async def story(service: AsyncAgentService) -> str | None:
        await service.agents.create("ann", "d", profile="teller")
        await service.agents.pause("ann", "d")
        await service.mail.send("ann", "agent:d", "hello", "a moment earlier", priority="high")
        await service.agents.sleep("ann", "d", wake_on=roost.mail("high"))
        await service.agents.resume("ann", "d")
        return await awake(service)

    assert world(BRAINS, story) == "mail high"


def test_all_of_them_must_have_been(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[bool, str | None]:
        soon = datetime.fromtimestamp(service.roost.context.host.clock.now() + 1.5, UTC)
        await asleep(service, wake_on=roost.all_of(roost.at(soon), roost.event("data_ready")))
        await service.events.publish("ann", "data_ready")
        return await still_asleep(service), await awake(service)

    assert world(BRAINS, story) == (True, "time and event data_ready")


def test_an_event_after_the_time_completes_all_of_them(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[bool, str | None]:
        before = datetime.fromtimestamp(service.roost.context.host.clock.now() - 1, UTC)
        await asleep(service, wake_on=roost.all_of(roost.at(before), roost.event("data_*")))
        sleeps_on = await still_asleep(service)
        await service.events.publish("ann", "data_ready")
        return sleeps_on, await awake(service)

    assert world(BRAINS, story) == (True, "time and event data_ready (data_*)")


def test_what_has_been_counts_although_it_is_gone_and_is_not_waited_for_any_more(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path, seed=1)
    service = simulation.start(BRAINS, QUICK)

    async def story() -> tuple[roost.Agent, datetime | None, str | None]:
        soon = roost.at(service.roost.context.host.clock.now() + 2)
        await asleep(service, wake_on=roost.all_of(roost.mail("high"), soon, roost.event("a"), roost.event("b")))
        await service.mail.send("ann", "agent:d", "hello", "for a second", priority="high", expires_in=1)
        await service.events.publish("ann", "a")
        await asyncio.sleep(5)
        before = await service.agents.get("ann", "d")
        due = await service.sleep_scheduler.get_next_wake_time("ann", "d")
        await service.events.publish("ann", "b")
        return before, due, await awake(service)

    before, due, reason = simulation.run(story())
    assert (before.state, before.queue_depth, before.wake_events, due) == ("sleeping", 1, ("b",), None)
    assert reason == "mail high and time and event a and event b"
    simulation.crash()


def test_a_task_does_not_wake_a_sleeping_agent_and_is_done_after_it_wakes(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[str, str | None, str | None]:
        await asleep(service)
        task_id = await service.tasks.send("ann", "d", "hello")
        before = await service.tasks.wait("ann", task_id, timeout=0.2)
        woken = await service.agents.wake("ann", "d", "it is time")
        return before.status, woken.wake_reason, (await service.tasks.wait("ann", task_id, timeout=20)).result

    assert world(BRAINS, story) == ("queued", "it is time", "task hello from user:ann, 1")


def test_an_agent_puts_itself_to_sleep_and_sleeps_when_its_task_ends(world: World) -> None:
    async def sleepy(turn: Turn) -> AsyncIterator[str]:
        await turn.sleep(1.5)
        await asyncio.sleep(0.05)
        yield f"{turn.text} done"

    async def story(service: AsyncAgentService) -> tuple[str | None, str, str | None, str | None]:
        await service.agents.create("ann", "d", profile="sleepy")
        first = await done(service, "first")
        state = (await until(service, lambda agent: agent.state == "sleeping")).state
        second = await service.tasks.send("ann", "d", "second")
        reason = await awake(service)
        return first.result, state, reason, (await service.tasks.wait("ann", second, timeout=20)).result

    assert world({"sleepy": sleepy}, story) == ("first done", "sleeping", "time", "second done")


def test_sleeping_agents_survive_a_restart_and_wake_for_what_came_meanwhile(world: World) -> None:
    async def first(service: AsyncAgentService) -> None:
        await asleep(service, seconds=0.2)
        await asleep(service, "e", wake_on=roost.event("data_ready"))

    async def second(service: AsyncAgentService) -> tuple[str | None, bool, str | None]:
        by_time, sleeps_on = await awake(service), await still_asleep(service, "e")
        await service.events.publish("ann", "data_ready")
        return by_time, sleeps_on, await awake(service, "e")

    world(BRAINS, first)
    assert world(BRAINS, second) == ("time", True, "event data_ready")


def test_a_lower_load_wakes(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path, seed=1)
    service = simulation.start(BRAINS, QUICK)
    host = simulation.host
    assert host is not None
    host.cpu = 0.9

    async def story() -> tuple[str, str | None]:
        await asleep(service, wake_on=roost.load_below(cpu=0.5))
        await asyncio.sleep(30)
        busy = (await service.agents.get("ann", "d")).state
        host.cpu = 0.1
        await asyncio.sleep(10)
        return busy, (await service.agents.get("ann", "d")).wake_reason

    assert simulation.run(story()) == ("sleeping", "load")
    simulation.crash()


def test_the_sleep_scheduler_sets_changes_and_forgets_the_time(world: World) -> None:
    async def story(service: AsyncAgentService) -> str | None:
        scheduler = service.sleep_scheduler
        await asleep(service, wake_on=roost.event("never"))
        assert await scheduler.get_next_wake_time("ann", "d") is None
        far = datetime.now(UTC) + timedelta(days=30_000)
        await scheduler.schedule_wake("ann", "d", far)
        assert await scheduler.get_next_wake_time("ann", "d") == far
        await scheduler.cancel_wake("ann", "d")
        assert await scheduler.get_next_wake_time("ann", "d") is None
        assert await still_asleep(service)
        await scheduler.schedule_wake("ann", "d", 1.0)
        return await awake(service)

    assert world(BRAINS, story) == "time"


def test_only_sleeping_agents_can_be_scheduled_to_wake(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="teller")
        with pytest.raises(roost.Conflict, match="put it to sleep first"):
            await service.sleep_scheduler.schedule_wake("ann", "d", 1.0)
        await service.agents.stop("ann", "d")
        with pytest.raises(roost.Conflict, match="cannot become sleeping"):
            await service.agents.sleep("ann", "d", 5)

    world(BRAINS, story)


def test_an_agent_that_is_paused_while_asleep_wakes_only_after_it_is_resumed(simulated: World) -> None:
    async def parrot(turn: Turn) -> AsyncIterator[str]:
        yield turn.text

    async def story(service: AsyncAgentService) -> tuple[str, str, str | None]:
        await service.agents.create("ann", "d", profile="parrot")
        await service.agents.sleep("ann", "d", 5.0, wake_on=roost.mail("low"))
        await service.agents.pause("ann", "d")
        await service.mail.send("ann", "agent:d", "hello", "there", priority="urgent")
        await asyncio.sleep(30.0)
        paused = await service.agents.get("ann", "d")
        await service.agents.resume("ann", "d")
        await asyncio.sleep(1.0)
        resumed = await service.agents.get("ann", "d")
        return paused.state, resumed.state, resumed.wake_reason

    assert simulated({"parrot": parrot}, story) == ("sleeping", "idle", "time")
