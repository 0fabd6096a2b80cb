"""M5, M6: deadlines of a meeting are met on time; a call is cancelled, and one without its creator fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

import roost
from roost import AsyncAgentService, Turn
from tests.runtime.conftest import World
from tests.runtime.meetings.meeting_rooms import BRAINS, over, play, running, seen, team

pytestmark = pytest.mark.order

PROMPTLY = 0.1
"""Seconds: long before the next poll of the store."""


async def stuck(turn: Turn) -> AsyncIterator[str]:
    await asyncio.sleep(10_000)
    yield "at last"


async def elapsed(s: AsyncAgentService, meeting: str) -> float:
    """Seconds after its deadline when it was decided."""
    view = await seen(s, meeting, over)
    assert view.over is not None
    assert view.deadline is not None
    return (view.over - view.deadline).total_seconds()


@pytest.mark.parametrize("deadline", [0.05, 0.3, 1.0, 2.5, 7.0])
def test_a_call_without_an_answer_fails_at_its_deadline(deadline: float) -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "away", start=False)
        await asyncio.sleep(1.7)  # between two polls of the store
        meeting = await s.meetings.call("ann", "news", required=["agent:away"], deadline=deadline)
        assert 0.0 <= await elapsed(s, meeting) < PROMPTLY

    play(story)


@pytest.mark.parametrize("by", ["chair", "other"])
def test_a_silent_speaker_is_skipped_when_its_time_is_up(by: str) -> None:
    """Also if it is the chair: then the next one sees to it, without any further delay."""

    async def story(s: AsyncAgentService) -> None:
        await team(s, "a", profile="stuck" if by == "chair" else "talker")
        await team(s, "b", profile="stuck" if by == "other" else "talker")
        meeting = await s.meetings.call(
            "ann", "standup", required=["agent:b"], floor="round_robin", turn_timeout=1, max_words=2, by="agent:a"
        )
        slow, already = ("agent:ann/a", 0) if by == "chair" else ("agent:ann/b", 1)
        await seen(s, meeting, lambda view: view.speakers == (slow,), "agent:a")
        since = asyncio.get_running_loop().time()
        await seen(s, meeting, lambda view: view.said > already, "agent:a", within=3.0)
        assert asyncio.get_running_loop().time() - since < 1.0 + PROMPTLY

    play(story, {**BRAINS, "stuck": stuck})


def test_a_player_that_does_not_move_is_asked_again_and_loses_on_time() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "x", profile="stuck")
        meeting = await s.meetings.call(
            "ann",
            "a game",
            required=["agent:x"],
            game="tic-tac-toe",
            turn_timeout=1,
            setting={"players": ["agent:x", "user:ann"]},
        )
        view = await seen(s, meeting, running)
        assert view.began is not None
        await seen(s, meeting, lambda view: view.outcome, within=5.0)
        after = asyncio.get_running_loop().time()
        began = (await s.meetings.view("ann", meeting)).began
        assert began is not None
        assert after - began.timestamp() < 2.0 + 2 * PROMPTLY

    play(story, {**BRAINS, "stuck": stuck})


@pytest.mark.alone
def test_timers_are_as_precise_on_threads(world: World) -> None:
    async def story(s: AsyncAgentService) -> None:
        await s.agents.create("ann", "away", profile="silent", start=False)
        late = []
        for _ in range(5):
            meeting = await s.meetings.call("ann", "news", required=["agent:away"], deadline=0.2)
            late.append(await elapsed(s, meeting))
        assert sorted(late)[2] < PROMPTLY

    world(BRAINS, story)


# --- calls that are cancelled ------------------------------------------------------------------------


def test_a_call_is_cancelled_by_its_creator_once() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "d")
        await team(s, "away", start=False)
        meeting = await s.meetings.call("ann", "news", required=["agent:d", "agent:away"], deadline=600)
        await seen(s, meeting, lambda view: len(view.present) == 2)
        with pytest.raises(roost.Forbidden, match=r"until the deadline user:ann decides .*: wait"):
            await s.meetings.cancel("ann", meeting, by="agent:d")
        view = await s.meetings.cancel("ann", meeting, "no time")
        assert (view.phase, view.reason) == ("failed", "cancelled by user:ann: no time")
        assert (await s.meetings.cancel("ann", meeting)).reason == view.reason
        told = await seen(s, meeting, over, "agent:d")
        assert told.reason == view.reason

    play(story)


def test_a_meeting_that_has_begun_is_ended_and_not_cancelled() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "d", start=False)
        meeting = await s.meetings.call("ann", "news", required=["agent:d"])
        with pytest.raises(roost.Forbidden, match="has not begun: wait until it has started, or cancel it"):
            await s.meetings.end("ann", meeting)
        await s.agents.start("ann", "d")
        await seen(s, meeting, running)
        with pytest.raises(roost.Forbidden, match="the meeting has begun: end it instead"):
            await s.meetings.cancel("ann", meeting)
        await s.meetings.end("ann", meeting)
        with pytest.raises(roost.Forbidden, match="the meeting has ended: call another one"):
            await s.meetings.cancel("ann", meeting)

    play(story)


def test_a_call_fails_when_its_creator_leaves_before_anyone_joins() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "away", start=False)
        meeting = await s.meetings.call("ann", "news", required=["agent:away"], deadline=5)
        view = await s.meetings.leave("ann", meeting, "lunch")
        assert (view.phase, view.reason) == ("failed", "user:ann, who called the meeting, has left: lunch")

    play(story)


@pytest.mark.parametrize("comes", [False, True])
@pytest.mark.parametrize("how", ["sleep", "pause"])
def test_a_call_of_an_agent_that_sleeps_or_is_paused_is_decided_at_its_deadline(how: str, comes: bool) -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "host")
        await team(s, "away", start=False)
        guest = "user:ann" if comes else "agent:away"
        meeting = await s.meetings.call("ann", "news", required=[guest], deadline=5, by="agent:host")
        await (
            s.agents.sleep("ann", "host", wake_on=roost.event("dawn"))
            if how == "sleep"
            else s.agents.pause("ann", "host")
        )
        if comes:
            await s.meetings.join("ann", meeting)
        await asyncio.sleep(5 + PROMPTLY)
        view = await s.meetings.view("ann", meeting, seen_by="agent:host")
        assert view.phase == ("running" if comes else "failed")
        agent = await s.agents.get("ann", "host")
        assert (agent.state, agent.paused) == (("sleeping", False) if how == "sleep" else ("idle", True))

    play(story)


def test_an_agent_cancels_its_call_with_a_tool() -> None:
    async def caller(turn: Turn) -> AsyncIterator[str]:
        called = await turn.call_tool("meeting.call", {"topic": "lunch", "required": ["agent:away"]})
        meeting = called.removeprefix("called: ")
        turn.state["meeting"] = meeting
        yield await turn.call_tool("meeting.cancel", {"meeting_id": meeting, "reason": "rain"})

    async def story(s: AsyncAgentService) -> None:
        await team(s, "d", profile="caller")
        await team(s, "away", start=False)
        done = await s.tasks.wait("ann", await s.tasks.send("ann", "d", "call"))
        assert done.result == "cancelled"
        [one] = await s.meetings.list("ann", participant="agent:d")
        view = await s.meetings.view("ann", one.meeting_id, seen_by="agent:d")
        assert (view.phase, view.reason) == ("failed", "cancelled by agent:ann/d: rain")

    play(story, {**BRAINS, "caller": caller})
