"""A program that does not know an agent's profile leaves the agent alone; one that knows it continues its work."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from roost import AsyncAgentService
from roost.core.monitoring.health import AgentHealth
from roost.errors import Invalid
from tests.runtime.agents.test_agents import teller
from tests.runtime.conftest import World, becomes, ended, short

ELSEWHERE = {"other": teller}
AT_HOME = {"teller": teller, "other": teller}


async def looked(service: AsyncAgentService) -> None:
    """Wait until everything that was due before has been checked: agents are checked in order."""
    await service.agents.create("ann", "beside", profile="other")
    task = await service.tasks.send("ann", "beside", "something else")
    assert (await service.tasks.wait("ann", task, timeout=20)).result
    await service.agents.delete("ann", "beside")


def test_what_it_has_to_do_waits_for_a_program_that_knows_the_profile(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async def made(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="teller", start=False, subscriptions=["news"])
        await service.tasks.send("ann", "d", "before")

    async def elsewhere(service: AsyncAgentService) -> None:
        await service.agents.start("ann", "d")
        await service.tasks.send("ann", "d", "meanwhile")
        await service.mail.send("ann", "agent:d", "a letter", "and its text", priority="high")
        await service.events.publish("ann", "news", {"of": "the day"})
        await looked(service)
        tasks = await service.tasks.list("ann", agent="d")
        assert [(task.status, task.attempts) for task in tasks] == [("queued", 0)] * 2
        assert await service.dead_letters.list("ann") == []
        seen = await service.agents.inspect("ann", "d")
        assert (seen.health, seen.agent.error_count, seen.agent.queue_depth) == (AgentHealth.PROFILE_MISSING, 0, 4)
        assert (await service.monitor.states("ann"))["d"].health is AgentHealth.PROFILE_MISSING

    async def at_home(service: AsyncAgentService) -> list[tuple[str, str, int]]:
        await becomes(lambda: service.agents.get("ann", "d"), lambda agent: agent.queue_depth == 0)
        return sorted((t.prompt, str(t.status), t.attempts) for t in await service.tasks.list("ann", agent="d"))

    world(AT_HOME, made)
    world(ELSEWHERE, elsewhere)
    assert "agents wait: their profile 'teller' is not known here" in caplog.text
    assert world(AT_HOME, at_home) == [("before", "done", 1), ("meanwhile", "done", 1)]


def test_a_sleeping_agent_wakes_only_in_a_program_that_knows_its_profile(simulated: World) -> None:
    async def asleep(service: AsyncAgentService) -> None:
        made = await service.agents.create("ann", "d", profile="teller")
        await service.agents.sleep("ann", "d", until=made.created + timedelta(seconds=5))

    async def elsewhere(service: AsyncAgentService) -> tuple[str, str | None]:
        await asyncio.sleep(60)
        agent = await service.agents.get("ann", "d")
        return agent.state, agent.wake_reason

    async def at_home(service: AsyncAgentService) -> str | None:
        woken = await becomes(lambda: service.agents.get("ann", "d"), lambda agent: agent.state != "sleeping")
        return woken.wake_reason

    simulated(AT_HOME, asleep)
    assert simulated(ELSEWHERE, elsewhere) == ("sleeping", None)
    assert simulated(AT_HOME, at_home) is not None


def test_a_message_to_it_fails_at_once_and_is_answered_where_its_profile_is_known(world: World) -> None:
    async def at_home(service: AsyncAgentService) -> str:
        await service.agents.create("ann", "d", profile="teller")
        return await service.create_talk_session("ann", agent="d")

    talk = world(AT_HOME, at_home)

    async def elsewhere(service: AsyncAgentService) -> str | None:
        await service.add_message("ann", talk, "are you there?")
        return (await ended(service, talk))[-1].error

    async def again(service: AsyncAgentService) -> tuple[str, str, str]:
        await service.add_message("ann", talk, "and now?")
        return short(await ended(service, talk))[-1]

    error = world(ELSEWHERE, elsewhere)
    assert error is not None
    assert error.startswith("The profile is unknown here; choose another one or start Roost where it is set up")
    assert world(AT_HOME, again) == ("agent", "talk and now? from user:ann, 1", "complete")


def test_it_works_again_after_its_profile_is_changed_to_a_known_one(world: World) -> None:
    async def at_home(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="teller", start=False)

    async def elsewhere(service: AsyncAgentService) -> str | None:
        task = await service.tasks.send("ann", "d", "hello")
        await service.agents.start("ann", "d")
        await looked(service)
        with pytest.raises(Invalid, match="there is no profile 'none'"):
            await service.agents.configure("ann", "d", profile="none")
        unchanged = await service.agents.configure("ann", "d", max_attempts=7)
        assert unchanged.config.profile == "teller"
        await service.agents.configure("ann", "d", profile="other")
        return (await service.tasks.wait("ann", task, timeout=20)).result

    world(AT_HOME, at_home)
    assert world(ELSEWHERE, elsewhere) == "task hello from user:ann, 1"
