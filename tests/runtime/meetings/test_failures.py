"""M5 and M9: participants that decline, stay silent, fail or are deleted."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.brains.guide import guided
from roost.brains.scripted import echo, scripted
from roost.core.meetings.participants import seats
from tests.runtime.meetings.meeting_rooms import BRAINS, all_see, heard, over, play, running, seen, team, texts


def test_all_participants_see_that_a_required_attendee_declined() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "d")
        await team(s, "no", invitations="decline")
        meeting = await s.meetings.call("ann", "news", required=["agent:d", "agent:no"])
        for by in ("user:ann", "agent:d"):
            view = await seen(s, meeting, over, by, within=5.0)  # long before the deadline
            assert (view.phase, view.reason) == ("failed", "agent:ann/no has declined: it takes no invitations")
        assert "Failed" in await s.meetings.minutes("ann", meeting)

    play(story)


def test_a_required_attendee_stays_silent_and_it_fails_at_the_deadline() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "d")
        await team(s, "away", start=False)
        meeting = await s.meetings.call("ann", "news", required=["agent:d", "agent:away"], deadline=30.0)
        await asyncio.sleep(29)
        assert (await s.meetings.view("ann", meeting)).phase == "calling"
        view = await all_see(s, meeting, ["user:ann", "agent:d"], over)
        assert (view.phase, view.reason) == ("failed", "agent:ann/away did not answer in time")
        await s.agents.start("ann", "away")
        await asyncio.sleep(20)
        assert (await s.meetings.view("ann", meeting)).phase == "failed"
        assert (await s.agents.get("ann", "away")).meetings == ()

    play(story)


def test_when_the_creator_is_lost_another_one_says_that_it_failed() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "host", "d")
        await team(s, "away", start=False)
        people = ["agent:d", "agent:away"]
        meeting = await s.meetings.call("ann", "news", required=people, deadline=20.0, by="agent:host")
        await seen(s, meeting, lambda view: len(view.present) == 2, "agent:d")
        await s.agents.stop("ann", "host")
        view = await seen(s, meeting, over, "agent:d")
        assert view.phase == "failed"

    play(story)


def test_an_optional_attendee_never_blocks() -> None:
    async def story(s: AsyncAgentService) -> None:
        [d] = await team(s, "d")
        await team(s, "away", start=False)
        await team(s, "no", invitations="decline")
        meeting = await s.meetings.call("ann", "news", required=["agent:d"], optional=["agent:away", "agent:no"])
        view = await seen(s, meeting, running, within=5.0)
        assert view.present == ("user:ann", d)

    play(story)


def test_a_decline_that_comes_before_anyone_waits_for_it_counts() -> None:
    """The one who declines is quicker than the creator's own turn is over."""
    told: list[str] = []

    async def caller(turn: Turn) -> AsyncIterator[str]:
        if turn.kind == "task":
            told.append(await turn.call_meeting("news", required=["agent:no"]))
            await asyncio.sleep(5)  # posted long before that
        yield ""

    async def story(s: AsyncAgentService) -> None:
        await s.agents.create("ann", "caller", profile="caller")
        await team(s, "no", invitations="decline")
        await s.tasks.send("ann", "caller", "call it")
        await asyncio.sleep(4)
        view = await s.meetings.view("ann", told[0], seen_by="agent:caller")
        assert (view.phase, view.reason) == ("failed", "agent:ann/no has declined: it takes no invitations")

    play(story, {**BRAINS, "caller": caller})


def test_a_brain_may_decline_or_come() -> None:
    async def choosy(turn: Turn) -> AsyncIterator[str]:
        if turn.meeting.why == "invited" and "boring" in turn.meeting.topic:
            await turn.meeting.decline("no time")
        yield ""

    async def story(s: AsyncAgentService) -> None:
        await s.agents.create("ann", "d", profile="choosy", invitations="ask")
        dull = await s.meetings.call("ann", "boring", required=["agent:d"])
        fun = await s.meetings.call("ann", "fun", required=["agent:d"])
        assert (await seen(s, dull, over)).reason == "agent:ann/d has declined: no time"
        assert (await seen(s, fun, running)).present == ("user:ann", "agent:ann/d")

    play(story, {"choosy": choosy})


def test_late_invitees_get_everything_from_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seats, "MOST_ENTRIES", 20)
    many = 50  # more than fit into two posts

    async def story(s: AsyncAgentService) -> None:
        await team(s, "d", "late")
        meeting = await s.meetings.call("ann", "news", required=["agent:d"], max_words=1_000)
        await seen(s, meeting, running)
        for number in range(many):
            await s.meetings.say("ann", meeting, str(number))
        await s.meetings.invite("ann", meeting, "agent:late")
        await seen(s, meeting, lambda view: len(view.present) == 3, within=5.0)  # no timer is waited for
        view = await s.meetings.view("ann", meeting, seen_by="agent:late", limit=1_000)
        assert texts(view) == [str(number) for number in range(many)]
        await asyncio.sleep(5)
        assert await heard(s, "late") == [f"user:ann: {number}" for number in range(many)]

    play(story)


def test_an_ended_meeting_takes_no_more_words() -> None:
    async def story(s: AsyncAgentService) -> None:
        [d] = await team(s, "d")
        meeting = await s.meetings.call("ann", "news", required=["agent:d"])
        await seen(s, meeting, running, d)
        await s.meetings.end("ann", meeting, "done")
        await seen(s, meeting, over, d)
        for by in (None, d):
            for late in (partial(s.meetings.say, text="more"), s.meetings.leave, s.meetings.end, s.meetings.raise_hand):
                with pytest.raises(roost.Forbidden, match="the meeting has ended: call another one"):
                    await late("ann", meeting, by=by)

    play(story)


def test_words_of_a_brain_that_was_still_thinking_when_it_ended_are_left_out() -> None:
    async def slow(turn: Turn) -> AsyncIterator[str]:
        await asyncio.sleep(10)
        yield "but wait"

    async def story(s: AsyncAgentService) -> None:
        await s.agents.create("ann", "d", profile="slow")
        meeting = await s.meetings.call("ann", "news", required=["agent:d"])
        await seen(s, meeting, running)
        await s.meetings.say("ann", meeting, "any questions?")
        await asyncio.sleep(5)
        await s.meetings.end("ann", meeting)
        await asyncio.sleep(20)
        assert texts(await s.meetings.view("ann", meeting, seen_by="agent:d")) == ["any questions?"]
        assert await s.dead_letters.list("ann") == []

    play(story, {"slow": slow})


def test_all_participants_see_that_an_agent_failed_and_continue() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "a", "c", profile="talker")
        await team(s, "b", profile="broken")
        people = ["agent:b", "agent:c"]
        meeting = await s.meetings.call(
            "ann", "standup", required=people, floor="round_robin", max_words=4, by="agent:a"
        )
        view = await all_see(s, meeting, ["agent:a", "agent:c"], over)
        assert texts(view) == ["a 1", "c 1", "a 2", "c 2"]
        [gone] = [one for one in view.participants if one.address == "agent:ann/b"]
        assert gone.status == "left"
        assert gone.reason.startswith("it failed: ")
        assert (await s.agents.get("ann", "b")).meetings == ()
        assert [event.name for event in await s.events.history("ann")] == ["agent.failed"]

    play(story)


def test_all_participants_see_that_an_agent_was_deleted_and_none_of_its_rows_remain() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "d", "e", "gone")
        await team(s, "sleeper", start=False)
        meeting = await s.meetings.call("ann", "news", required=["agent:d", "agent:gone"])
        waiting = await s.meetings.call("ann", "more", required=["agent:sleeper"])
        await seen(s, meeting, running)
        await s.agents.delete("ann", "gone")
        await s.agents.delete("ann", "sleeper")
        view = await all_see(
            s, meeting, ["user:ann", "agent:d"], lambda view: view.present == ("user:ann", "agent:ann/d")
        )
        assert [one.reason for one in view.participants if one.status == "left"] == ["it was deleted"]
        view = await seen(s, waiting, over, within=5.0)  # it never heard of it, and is not waited for
        assert (view.phase, view.reason) == ("failed", "agent:ann/sleeper has declined: it was deleted")
        rows = await s.roost.context.store.read(
            lambda tx: tx.read("SELECT participant FROM meetings UNION SELECT participant FROM meeting_log")
        )
        assert {row[0] for row in rows} == {"user:ann", "agent:ann/d"}

    play(story)


def test_the_last_participant_ends_the_meeting() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "d", "e")
        meeting = await s.meetings.call("ann", "news", required=["agent:e"], by="agent:d")
        await seen(s, meeting, running, "agent:e")
        await s.meetings.leave("ann", meeting, "tired", by="agent:d")
        assert (await seen(s, meeting, over, "agent:e")).phase == "ended"

    play(story)


def test_an_agent_that_slept_comes_back_and_has_missed_nothing() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "d", "e")
        meeting = await s.meetings.call("ann", "news", required=["agent:d", "agent:e"])
        await seen(s, meeting, lambda view: running(view) and len(view.present) == 3)
        await s.agents.sleep("ann", "d", wake_on=roost.event("morning"))
        for number in range(3):
            await s.meetings.say("ann", meeting, str(number))
        await asyncio.sleep(100)
        assert (await s.meetings.view("ann", meeting, seen_by="agent:d")).said == 0
        await s.events.publish("ann", "morning")
        await all_see(s, meeting, ["user:ann", "agent:d", "agent:e"], lambda view: view.said == 3)
        await asyncio.sleep(5)
        assert await heard(s, "d") == ["user:ann: 0", "user:ann: 1", "user:ann: 2"]

    play(story)


def test_endless_chatter_is_cut_off() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "a", "b", "c", profile="talker")
        meeting = await s.meetings.call("ann", "small talk", required=["agent:b", "agent:c"], by="agent:a")
        view = await seen(s, meeting, over, "agent:a", within=2_000)
        assert (view.phase, view.said) == ("ended", 30)

    play(story, limits=roost.Limits(meeting_words=30))


def test_more_meetings_than_allowed_are_refused() -> None:
    async def story(s: AsyncAgentService) -> None:
        first = await s.meetings.call("ann", "one")
        await s.meetings.call("ann", "two")
        with pytest.raises(roost.LimitReached, match="has called 2 meetings that are not over"):
            await s.meetings.call("ann", "three")
        await s.meetings.end("ann", first)
        await s.meetings.call("ann", "three")

    play(story, limits=roost.Limits(meetings_at_once=2))


def test_changes_of_a_meeting_are_facts() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "d")
        cursor = (await s.monitor.facts("ann")).cursor
        meeting = await s.meetings.call("ann", "news", required=["agent:d"])
        await seen(s, meeting, running, "agent:d")
        await s.meetings.end("ann", meeting)
        await seen(s, meeting, over, "agent:d")
        told = [fact for fact in (await s.monitor.facts("ann", after=cursor)).facts if "Meeting" in fact.name]
        assert {fact.data["meeting_id"] for fact in told} == {meeting}
        assert sorted((fact.name, fact.about or "") for fact in told) == [
            ("MeetingCalled", ""),
            ("MeetingEnded", ""),
            ("MeetingEnded", "ann/d"),
            ("MeetingStarted", ""),
            ("MeetingStarted", "ann/d"),
        ]

    play(story)


def test_a_meeting_can_be_called_from_a_talk() -> None:
    async def caller(turn: Turn) -> AsyncIterator[str]:
        if turn.kind == "talk":
            yield await turn.call_meeting("as asked", required=["agent:d"])

    async def story(s: AsyncAgentService) -> None:
        await team(s, "d")
        await s.agents.create("ann", "host", profile="caller")
        with_agent = await s.create_talk_session("ann", agent="host")
        with_profile = await s.create_talk_session("ann", profile="caller")
        for talk, creator in ((with_agent, "agent:ann/host"), (with_profile, "user:ann")):
            await s.add_message("ann", talk, "call one")
            async for _ in s.stream_messages("ann", talk):
                pass
            [_, answer] = (await s.get_messages("ann", talk)).messages
            view = await seen(s, answer.content, running)
            assert (view.creator, view.topic) == (creator, "as asked")

    play(story, {**BRAINS, "caller": caller})


def test_an_invitation_wakes_a_sleeping_agent_as_mail_of_its_priority_does() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "d", wake_on_priority="high")
        await s.agents.sleep("ann", "d", wake_on=roost.mail("high"))
        calm = await s.meetings.call("ann", "calm", optional=["agent:d"])
        await asyncio.sleep(30)
        assert (await s.agents.get("ann", "d")).state == "sleeping"
        pressing = await s.meetings.call("ann", "pressing", required=["agent:d"], priority="high")
        for meeting in (pressing, calm):  # once it is awake it hears of both
            await seen(s, meeting, lambda view: "agent:ann/d" in view.present)
        assert (await s.agents.get("ann", "d")).state != "sleeping"

    play(story)


def test_what_is_long_over_is_swept_to_its_minutes() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "d")
        meeting = await s.meetings.call("ann", "news", required=["agent:d"])
        await seen(s, meeting, running)
        await s.meetings.say("ann", meeting, "remember this")
        await s.meetings.end("ann", meeting)
        await seen(s, meeting, over, "agent:d")
        await asyncio.sleep(1)
        removed = await s.roost.retention.sweep()
        assert removed["meeting_logs"] == 2
        for by in ("user:ann", "agent:d"):
            assert "remember this" in await s.meetings.minutes("ann", meeting, seen_by=by)
            with pytest.raises(roost.Forbidden, match="only its minutes are left"):
                await s.meetings.view("ann", meeting, seen_by=by)
        assert [one.phase for one in await s.meetings.list("ann")] == ["ended"]

    play(story, limits=roost.Limits(keep_meeting_logs_days=1e-6))


@pytest.mark.parametrize("profile", ["echo", "guide", "scripted"])
@pytest.mark.parametrize("rule", ["free", "round_robin"])
def test_scripted_brains_do_not_answer_each_other(profile: str, rule: str) -> None:
    brains: dict[str, roost.Brain] = {"echo": echo, "guide": guided(pace=0.0), "scripted": scripted(["one", "two"])}

    async def story(s: AsyncAgentService) -> None:
        await team(s, "a", "b", profile=profile)
        meeting = await s.meetings.call("ann", "chat", required=["agent:a", "agent:b"], floor=rule)
        await seen(s, meeting, running)
        await s.meetings.say("ann", meeting, "hello you")
        await asyncio.sleep(100)
        view = await s.meetings.view("ann", meeting)
        spoken = Counter(word.sender for word in view.words)
        assert view.phase == "running"
        assert spoken.keys() == {"user:ann", "agent:ann/a", "agent:ann/b"}
        assert max(spoken.values()) <= 2, texts(view)

    play(story, brains)


def test_messages_to_people_use_the_short_names_of_their_agents() -> None:
    async def thinking(turn: Turn) -> AsyncIterator[str]:
        await asyncio.sleep(10)
        yield ""

    async def story(s: AsyncAgentService) -> None:
        await team(s, "d", "e", profile="thinking")
        meeting = await s.meetings.call("ann", "news", required=["agent:d"], floor="round_robin", by="agent:e")
        await s.meetings.join("ann", meeting)
        await seen(s, meeting, lambda view: running(view) and "user:ann" in view.present, "agent:e")
        with pytest.raises(roost.Forbidden, match=r"^it is the turn of agent:[de]: wait for yours$"):
            await s.meetings.say("ann", meeting, "me first")
        minutes = await s.meetings.minutes("ann", meeting)
        assert "Called by agent:e at" in minutes
        assert "- agent:d: there\n" in minutes

    play(story, {"thinking": thinking})
