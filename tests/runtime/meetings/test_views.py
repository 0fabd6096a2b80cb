"""Views of several participants or meetings in one call."""

from __future__ import annotations

import asyncio

import pytest

import roost
from roost import AsyncAgentService
from tests.runtime.meetings.meeting_rooms import all_see, over, play, running, seen, team


def test_a_user_gets_the_views_of_all_own_participants_and_of_nobody_else() -> None:
    async def story(s: AsyncAgentService) -> None:
        d, e = await team(s, "d", "e")
        meeting = await s.meetings.call("ann", "Roof", required=[d], optional=[e], open=True)
        await s.meetings.join("bob", meeting)
        await all_see(s, meeting, [d, e], lambda view: len(view.present) == 4)
        await s.meetings.say("ann", meeting, "It leaks.")
        await all_see(s, meeting, [d, e], lambda view: view.said == 1)
        views = await s.meetings.views("ann", meeting)
        assert [view.seen_by for view in views] == ["user:ann", e, d]
        assert {(view.said, view.words, view.cursor) for view in views} == {(1, (), views[0].cursor)}
        assert [view.seen_by for view in await s.meetings.views("bob", meeting)] == ["user:bob"]
        with pytest.raises(roost.NotFound):
            await s.meetings.views("cal", meeting)

    play(story)


def test_an_overview_has_the_meetings_of_the_list_with_their_views() -> None:
    async def story(s: AsyncAgentService) -> None:
        [d] = await team(s, "d")
        one = await s.meetings.call("ann", "One", required=[d])
        two = await s.meetings.call("ann", "Two", required=[d])
        await seen(s, one, running)
        await seen(s, two, running)
        await s.meetings.say("ann", one, "to all")
        found = await s.meetings.overview("ann")
        assert [row.summary for row in found] == await s.meetings.list("ann")
        assert [(row.meeting_id, row.view and (row.view.said, row.view.words)) for row in found] == [
            (two, (0, ())),
            (one, (1, ())),
        ]
        assert [row.meeting_id for row in await s.meetings.overview("ann", limit=1, before=two)] == [one]
        assert [row.meeting_id for row in await s.meetings.overview("ann", participant=d, phase="running")] == [
            two,
            one,
        ]
        assert await s.meetings.overview("ann", phase="ended") == await s.meetings.overview("bob") == []

    play(story)


def test_a_meeting_of_which_only_the_minutes_are_left_has_no_view() -> None:
    async def story(s: AsyncAgentService) -> None:
        [d] = await team(s, "d")
        meeting = await s.meetings.call("ann", "Old", required=[d])
        await seen(s, meeting, running)
        await s.meetings.end("ann", meeting)
        await seen(s, meeting, over, d)
        await asyncio.sleep(1)
        await s.roost.retention.sweep()
        [row] = await s.meetings.overview("ann")
        assert (row.summary.topic, row.view) == ("Old", None)
        assert await s.meetings.views("ann", meeting) == []

    play(story, limits=roost.Limits(keep_meeting_logs_days=1e-6))
