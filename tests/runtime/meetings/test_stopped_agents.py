"""M9: an agent that is stopped leaves its meetings at once, and returns to them when it is started."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from roost import AsyncAgentService, Turn
from tests.runtime.meetings.meeting_rooms import BRAINS, all_see, heard, over, play, running, seen, team, texts

SOON = 3.0
"""Seconds: long before a turn's time is out, or others are asked what one has missed."""


async def stuck(turn: Turn) -> AsyncIterator[str]:
    await asyncio.sleep(10_000)
    yield "at last"


def test_the_floor_of_a_stopped_agent_passes_to_the_next_at_once() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "a", "c", profile="talker")
        await team(s, "b", profile="stuck")
        meeting = await s.meetings.call(
            "ann", "standup", required=["agent:b", "agent:c"], floor="round_robin", max_words=4, by="agent:a"
        )
        await seen(s, meeting, lambda view: view.speakers == ("agent:ann/b",), "agent:c")
        await s.agents.stop("ann", "b")
        for by in ("agent:a", "agent:c"):
            view = await seen(s, meeting, over, by, within=SOON)
            assert texts(view) == ["a 1", "c 1", "a 2", "c 2"]
            [gone] = [one for one in view.participants if one.address == "agent:ann/b"]
            assert (gone.status, gone.reason) == ("left", "it was stopped")
        assert (await s.agents.get("ann", "b")).meetings == ()

    play(story, {**BRAINS, "stuck": stuck})


def test_an_agent_that_is_started_again_comes_back_and_has_missed_nothing() -> None:
    async def story(s: AsyncAgentService) -> None:
        everyone = ["user:ann", *await team(s, "d", "e")]
        meeting = await s.meetings.call("ann", "news", required=["agent:d", "agent:e"])
        await seen(s, meeting, lambda view: running(view) and len(view.present) == 3)
        await s.agents.stop("ann", "d")
        for number in range(3):
            await s.meetings.say("ann", meeting, str(number))
        await asyncio.sleep(100)
        assert (await s.meetings.view("ann", meeting)).present == ("user:ann", "agent:ann/e")
        await s.agents.start("ann", "d")
        for by in everyone:
            await seen(s, meeting, lambda view: len(view.present) == 3 and view.said == 3, by, within=SOON)
        await s.meetings.say("ann", meeting, "3")
        await all_see(s, meeting, everyone, lambda view: view.said == 4)
        await asyncio.sleep(5)
        assert await heard(s, "d") == [f"user:ann: {number}" for number in range(4)]

    play(story)


def test_an_agent_that_left_does_not_come_back_when_it_is_started() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "d", "e")
        meeting = await s.meetings.call("ann", "news", required=["agent:d", "agent:e"])
        await seen(s, meeting, running, "agent:d")
        await s.meetings.leave("ann", meeting, "tired", by="agent:d")
        await s.agents.stop("ann", "d")
        await s.agents.start("ann", "d")
        await asyncio.sleep(100)
        assert (await s.meetings.view("ann", meeting)).present == ("user:ann", "agent:ann/e")

    play(story)


def test_an_agent_that_comes_back_after_the_end_sees_that_it_is_over() -> None:
    async def story(s: AsyncAgentService) -> None:
        [d, _] = await team(s, "d", "e")
        meeting = await s.meetings.call("ann", "news", required=["agent:d", "agent:e"])
        await seen(s, meeting, running, d)
        await s.agents.stop("ann", "d")
        await s.meetings.end("ann", meeting, "done")
        await s.agents.start("ann", "d")
        view = await seen(s, meeting, over, d, within=SOON)
        assert (view.phase, view.minutes, view.present) == ("ended", "done", ("user:ann", "agent:ann/e"))

    play(story)


def test_a_restart_of_roost_removes_no_participant() -> None:
    async def story(s: AsyncAgentService) -> None:
        [d] = await team(s, "d")
        meeting = await s.meetings.call("ann", "news", required=[d])
        before = await seen(s, meeting, running, d)
        await s.agents.restart("ann", "d")
        await s.meetings.say("ann", meeting, "still there?")
        after = await seen(s, meeting, lambda view: view.said == 1, d, within=SOON)
        assert after.participants == before.participants

    play(story)


def test_a_meeting_whose_required_participant_is_stopped_fails_at_once() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "d", "e")
        await team(s, "away", start=False)
        meeting = await s.meetings.call("ann", "news", required=["agent:d", "agent:e", "agent:away"])
        await seen(s, meeting, lambda view: len(view.present) == 3, "agent:e")
        await s.agents.stop("ann", "d")
        for by in ("user:ann", "agent:e"):
            view = await seen(s, meeting, over, by, within=SOON)
            assert (view.phase, view.reason) == ("failed", "agent:ann/d has left: it was stopped")

    play(story)


def test_invited_participants_see_that_the_creator_was_stopped_before_the_start() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "host")
        meeting = await s.meetings.call("ann", "news", required=["user:ann"], by="agent:host")
        await s.agents.stop("ann", "host")
        view = await s.meetings.view("ann", meeting)
        assert (view.phase, view.reason) == (
            "failed",
            "agent:ann/host, who called the meeting, has left: it was stopped",
        )

    play(story)


def test_the_last_participant_after_a_stop_sees_that_it_is_over() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "d")
        meeting = await s.meetings.call("ann", "news", required=["agent:d"])
        await seen(s, meeting, running, "agent:d")
        cursor = (await s.monitor.facts("ann")).cursor
        await s.agents.stop("ann", "d")
        assert (await s.meetings.view("ann", meeting)).phase == "ended"
        told = (await s.monitor.facts("ann", after=cursor)).facts
        assert [fact.data["meeting_id"] for fact in told if fact.name == "MeetingEnded"] == [meeting]

    play(story)
