"""A talk with an agent: its turns go through the agent's inbox, wake it, and run on its thread with its state."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

import roost
from roost import AsyncAgentService, Turn, Usage
from tests.runtime.agents.test_agents import done, teller, until
from tests.runtime.conftest import World, becomes, ended, said, short

pytestmark = pytest.mark.order


async def talk_with(service: AsyncAgentService, agent: str = "d") -> str:
    return await service.create_talk_session("ann", agent=agent)


def test_it_answers_with_the_state_it_has_from_its_tasks(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[tuple[str, str, str]], str | None]:
        await service.agents.create("ann", "d", profile="teller")
        await done(service, "before")
        talk = await talk_with(service)
        await service.add_message("ann", talk, "hello")
        messages = short(await ended(service, talk))
        return messages, (await done(service, "after")).result

    messages, after = world({"teller": teller}, story)
    assert messages == [("user", "hello", "complete"), ("agent", "talk hello from user:ann, 2", "complete")]
    assert after == "task after from user:ann, 3"


def test_a_message_wakes_a_sleeping_agent(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[str, str | None, str]:
        await service.agents.create("ann", "d", profile="teller")
        talk = await talk_with(service)
        before = await service.agents.sleep("ann", "d", wake_on=roost.event("never"))
        await service.add_message("ann", talk, "wake up")
        answer = (await ended(service, talk))[-1].content
        return before.state, (await service.agents.get("ann", "d")).wake_reason, answer

    assert world({"teller": teller}, story) == ("sleeping", "talk", "talk wake up from user:ann, 1")


def test_what_is_said_to_a_stopped_agent_is_answered_when_it_is_started(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[bool, int, str]:
        await service.agents.create("ann", "d", profile="teller")
        talk = await talk_with(service)
        await service.agents.stop("ann", "d")
        await service.add_message("ann", talk, "are you there?")
        await service.agents.create("ann", "beside", profile="teller")
        task = await service.tasks.send("ann", "beside", "something else")
        await service.tasks.wait("ann", task, timeout=20)
        page = await service.get_messages("ann", talk)
        await service.agents.start("ann", "d")
        return page.running, len(page.messages), (await ended(service, talk))[-1].content

    assert world({"teller": teller}, story) == (True, 1, "talk are you there? from user:ann, 1")


async def slow(turn: Turn) -> AsyncIterator[str]:
    yield "part1"
    if turn.messages[-1].content == "first":
        await asyncio.sleep(3_600)
    yield " part2"


def test_it_can_be_interrupted_like_any_talk(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[tuple[str, str, str]]:
        await service.agents.create("ann", "d", profile="slow")
        talk = await talk_with(service)
        await service.add_message("ann", talk, "first")
        await said(service, talk, "part1")
        assert (await service.agents.get("ann", "d")).state == "active"
        await service.add_message("ann", talk, "second")
        messages = short(await ended(service, talk))
        await until(service, lambda agent: agent.state == "idle")
        return messages

    assert world({"slow": slow}, story) == [
        ("user", "first", "complete"),
        ("agent", "part1", "interrupted"),
        ("user", "second", "complete"),
        ("agent", "part1 part2", "complete"),
    ]


def test_stopping_the_agent_interrupts_its_talk_which_resumes_after_the_start(world: World) -> None:
    asked: list[str] = []

    async def slow_once(turn: Turn) -> AsyncIterator[str]:
        asked.append(turn.text)
        yield "begun"
        if len(asked) == 1:
            await asyncio.sleep(3_600)
        yield " ended"

    async def story(service: AsyncAgentService) -> list[tuple[str, str, str]]:
        await service.agents.create("ann", "d", profile="slow_once")
        talk = await talk_with(service)
        await service.add_message("ann", talk, "hello")
        await said(service, talk, "begun")
        await service.agents.restart("ann", "d")
        return short(await ended(service, talk))

    assert world({"slow_once": slow_once}, story) == [
        ("user", "hello", "complete"),
        ("agent", "begun", "interrupted"),
        ("agent", "begun ended", "complete"),
    ]


def test_what_was_not_answered_before_the_close_is_answered_after_the_start(world: World) -> None:
    talks: list[str] = []

    async def first(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="teller", start=False)
        talks.append(await talk_with(service))
        await service.add_message("ann", talks[0], "hello")

    async def second(service: AsyncAgentService) -> str:
        await service.agents.start("ann", "d")
        return (await ended(service, talks[0]))[-1].content

    world({"teller": teller}, first)
    assert world({"teller": teller}, second) == "talk hello from user:ann, 1"


def test_a_turn_of_a_talk_sends_and_sleeps_like_any_other(world: World) -> None:
    async def acts(turn: Turn) -> AsyncIterator[str]:
        if turn.kind == "talk":
            await turn.send("agent:e", f"told by {turn.agent_id}")
            await turn.sleep(wake_on=roost.event("never"))
        turn.state["heard"] = turn.text
        yield f"{turn.sender} {turn.text}"

    async def story(service: AsyncAgentService) -> tuple[str, list[str]]:
        await service.agents.create("ann", "d", profile="acts")
        await service.agents.create("ann", "e", profile="acts")
        talk = await talk_with(service)
        await service.add_message("ann", talk, "go")
        await ended(service, talk)
        asleep = await until(service, lambda agent: agent.state == "sleeping")
        changes = await becomes(lambda: service.agents.history("ann", "e"), lambda found: len(found) > 2)
        return asleep.state, [str(change.after) for change in changes]

    assert world({"acts": acts}, story) == ("sleeping", ["idle", "active", "idle"])


def test_only_ones_own_and_shared_agents_can_be_talked_with(world: World) -> None:
    async def story(service: AsyncAgentService) -> str:
        await service.agents.create("bob", "private", profile="teller")
        await service.agents.create("bob", "shared", profile="teller", shared=True)
        for name in ("nobody", "agent:bob/private", "agent:bob/nobody"):
            with pytest.raises(roost.NotFound, match="there is no agent"):
                await talk_with(service, name)
        with pytest.raises(roost.Invalid, match="not both"):
            await service.create_talk_session("ann", agent="d", profile="teller")
        with pytest.raises(roost.Invalid, match="the address 5 is not valid"):
            await service.create_talk_session("ann", agent=5)  # type: ignore[arg-type]
        with pytest.raises(roost.Invalid, match="is a user"):
            await talk_with(service, "user:bob")
        talk = await talk_with(service, "agent:bob/shared")
        await service.add_message("ann", talk, "hello")
        return (await ended(service, talk))[-1].content

    assert world({"teller": teller}, story) == "talk hello from user:ann, 1"


def test_anothers_agent_is_talked_with_only_while_it_is_shared(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[str], int]:
        await service.agents.create("bob", "shared", profile="teller", shared=True)
        talk, bobs = (
            await talk_with(service, "agent:bob/shared"),
            await service.create_talk_session("bob", agent="shared"),
        )
        await service.add_message("ann", talk, "hello", key="first")
        await ended(service, talk)
        await service.agents.configure("bob", "shared", shared=False)
        for key in (None, "second"):
            with pytest.raises(roost.NotFound, match="there is no agent 'shared'"):
                await service.add_message("ann", talk, "again", key=key)
        there = await service.add_message("ann", talk, "hello", key="first")
        await service.add_message("bob", bobs, "hello")
        page = await service.get_messages("ann", talk)
        assert not page.running
        await service.agents.configure("bob", "shared", shared=True)
        await service.add_message("ann", talk, "at last")
        return [m.content for m in page.messages + tuple(await ended(service, talk))[2:3]], there.seq

    said_then = ["hello", "talk hello from user:ann, 1"]
    assert world({"teller": teller}, story) == ([*said_then, "at last"], 1)


def test_what_waits_when_the_agent_is_shared_no_more_is_answered(world: World) -> None:
    async def story(service: AsyncAgentService) -> str:
        await service.agents.create("bob", "shared", profile="teller", shared=True, start=False)
        talk = await talk_with(service, "agent:bob/shared")
        await service.add_message("ann", talk, "hello")
        await service.agents.configure("bob", "shared", shared=False)
        await service.agents.start("bob", "shared")
        return (await ended(service, talk))[-1].content

    assert world({"teller": teller}, story) == "talk hello from user:ann, 1"


def test_deleting_the_agent_ends_its_talks(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="slow")
        talk = await talk_with(service)
        await service.add_message("ann", talk, "first")
        await said(service, talk, "part1")
        await service.agents.delete("ann", "d")
        with pytest.raises(roost.NotFound):
            await service.get_messages("ann", talk)
        assert await service.list_sessions("ann") == []

    world({"slow": slow}, story)


def test_the_run_of_a_shared_agent_hides_its_state_and_steps_from_other_users(world: World) -> None:
    async def keeper(turn: Turn) -> AsyncIterator[str]:
        turn.state["pin"] = "of bob's own"
        turn.spend(Usage(120, 30, 0.25, "some:model"))
        yield await turn.step("look", lambda: "it up")

    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("bob", "shared", profile="keeper", shared=True)
        await service.tasks.wait("bob", await service.tasks.send("bob", "shared", "learn"))
        talk = await talk_with(service, "agent:bob/shared")
        await service.add_message("ann", talk, "hello")
        await ended(service, talk)
        [run] = await service.runs.list("ann", talk=talk)
        entry = await service.runs.get("ann", run.run_id)
        assert (run.steps, run.usage, entry.run) == (0, Usage(), run)
        assert (entry.text, entry.steps, entry.given, entry.usage) == ("it up", (), {}, Usage())
        with pytest.raises(roost.Conflict, match="cannot be replayed"):
            await service.runs.replay("ann", run.run_id)

    world({"keeper": keeper}, story)
