"""M4: an agent knows its meetings, and limits of a call are checked when it is made."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

import roost
from roost import AsyncAgentService, Turn
from tests.runtime.meetings.meeting_rooms import BRAINS, play, running, seen, team


async def lister(turn: Turn) -> AsyncIterator[str]:
    """Tells what it knows of its meetings, by itself and with its tool."""
    if turn.kind != "task":
        return
    told = [(one.topic, one.phase, one.status) for one in await turn.meetings()]
    listed = json.loads(await turn.call_tool("meeting.list", {}))
    assert [(one["topic"], one["phase"], one["you_are"]) for one in listed] == told
    yield json.dumps(told)


def test_an_agent_and_its_owner_see_its_meetings() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "d", profile="lister", invitations="ask")
        await team(s, "e", profile="silent")
        meetings = [await s.meetings.call("ann", topic, required=["agent:e"]) for topic in ("one", "two", "three")]
        for meeting in meetings[:2]:
            await seen(s, meeting, running)
            await s.meetings.invite("ann", meeting, "agent:d")
        await seen(s, meetings[1], lambda view: len(view.present) == 3)
        await s.meetings.end("ann", meetings[0])
        await seen(s, meetings[0], lambda view: view.is_over, "agent:d")
        await s.agents.configure("ann", "d", invitations="decline")
        done = await s.tasks.wait("ann", await s.tasks.send("ann", "d", "list"))
        assert json.loads(str(done.result)) == [["two", "running", "in"]]
        inspected = await s.agents.inspect("ann", "d")
        assert [(one.meeting_id, one.topic) for one in inspected.meetings] == [(meetings[1], "two")]
        [run, *_] = await s.runs.list("ann", agent="d")
        await s.meetings.end("ann", meetings[1])
        replay = await s.runs.replay("ann", run.run_id)
        assert (replay.diff, replay.is_identical) == ("", True), "as it was then"

    play(story, {**BRAINS, "lister": lister})


def test_an_invitation_that_waits_for_an_answer_is_listed() -> None:
    async def undecided(turn: Turn) -> AsyncIterator[str]:
        await asyncio.sleep(10)
        yield ""

    async def story(s: AsyncAgentService) -> None:
        await team(s, "d", profile="undecided", invitations="ask")
        meeting = await s.meetings.call("ann", "news", required=["agent:d"])
        await asyncio.sleep(1)
        [one] = (await s.agents.inspect("ann", "d")).meetings
        assert (one.meeting_id, one.status, one.phase) == (meeting, "invited", "calling")

    play(story, {**BRAINS, "undecided": undecided})


def test_a_moderator_that_is_not_invited_is_refused() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "d", "e")
        with pytest.raises(roost.Invalid, match="the moderator 'agent:e' is not invited: name it as `required`"):
            await s.meetings.call("ann", "news", required=["agent:d"], floor="moderator", moderator="agent:e")
        for who in ("agent:d", "user:ann"):
            meeting = await s.meetings.call("ann", "news", required=["agent:d"], floor="moderator", moderator=who)
            view = await seen(s, meeting, running)
            assert view.moderator == ("agent:ann/d" if who == "agent:d" else who)

    play(story)


def test_how_many_take_part_is_a_limit_that_errors_name() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "a", "b", "c")
        with pytest.raises(
            roost.Invalid, match=r"3 participants are invited, .* raise the limit `meeting_participants`"
        ):
            await s.meetings.call("ann", "news", required=["agent:a", "agent:b", "agent:c"])
        meeting = await s.meetings.call("ann", "news", required=["agent:a", "agent:b"])
        with pytest.raises(roost.Forbidden, match="is full, with 3 participants"):
            await s.meetings.invite("ann", meeting, "agent:c")

    play(story, limits=roost.Limits(meeting_participants=3))
    with pytest.raises(
        roost.Invalid, match="meeting_participants must be a whole number greater than 0 and at most 256"
    ):
        roost.Limits(meeting_participants=257)


def test_more_than_64_may_meet_where_the_limit_says_so() -> None:
    async def story(s: AsyncAgentService) -> None:
        names = [f"a{number}" for number in range(70)]
        await s.agents.create_many("ann", names, profile="silent")
        meeting = await s.meetings.call("ann", "all", required=[f"agent:{name}" for name in names])
        view = await seen(s, meeting, lambda view: len(view.present) == 71)
        assert view.phase == "running"

    play(story, limits=roost.Limits(meeting_participants=80))
