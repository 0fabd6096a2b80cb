"""M6, M7: late words and moves are refused where all can see it, and their author gets another turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest

import roost
from roost import AsyncAgentService, MeetingView, Turn
from tests.runtime.meetings.meeting_rooms import BRAINS, all_see, over, play, running, seen, team, texts

Told = list[tuple[str, str, list[str]]]


def speaker(told: Told, *, wait: float = 10.0) -> Mapping[str, roost.Brain]:
    """A brain that takes longer than its turn for its first words, and listens from then on."""

    async def slow(turn: Turn) -> AsyncIterator[str]:
        refused = [f"{one.kind} {one.text}: {one.reason}" for one in turn.meeting.refused]
        told.append((str(turn.agent_id), str(turn.meeting.why), refused))
        if turn.meeting.why == "floor" and len([why for _, why, _ in told if why == "floor"]) == 1:
            await asyncio.sleep(wait)
            yield "too late"

    return {**BRAINS, "slow": slow}


async def round_of(s: AsyncAgentService) -> str:
    """Ann, who keeps silent, and a slow agent, of which the slow one has the floor."""
    await team(s, "d", profile="slow")
    meeting = await s.meetings.call("ann", "standup", required=["agent:d"], floor="round_robin", turn_timeout=0)
    await seen(s, meeting, running)
    await s.meetings.say("ann", meeting, "begin")
    await seen(s, meeting, lambda view: view.speakers == ("agent:ann/d",), "agent:d")
    return meeting


def refusals(view: MeetingView) -> list[tuple[str, str, str]]:
    return [(one.sender, one.kind, one.text) for one in view.refused]


def test_words_said_after_the_floor_has_moved_are_refused_for_all_to_see() -> None:
    told: Told = []

    async def story(s: AsyncAgentService) -> None:
        meeting = await round_of(s)
        await asyncio.sleep(1)
        await s.meetings.pass_turn("ann", meeting, "agent:d")
        both = ["user:ann", "agent:ann/d"]
        view = await all_see(s, meeting, both, lambda view: view.refused)
        assert (texts(view), refusals(view)) == (["begin"], [("agent:ann/d", "said", "too late")])
        reason = "it is the turn of user:ann: wait for yours"
        assert view.refused[0].reason == reason
        await asyncio.sleep(5)
        assert told == [("d", "floor", []), ("d", "refused", [f"said too late: {reason}"])]
        runs = await s.runs.list("ann", agent="d")
        of_run = (await s.runs.get("ann", runs[1].run_id)).refused
        assert [(one.kind, one.text, one.reason) for one in of_run] == [("said", "too late", reason)]
        assert (await s.runs.get("ann", runs[0].run_id)).refused == ()

    play(story, speaker(told))


def test_a_participant_that_is_always_refused_is_not_asked_endlessly() -> None:
    turns: list[str] = []

    async def chatty(turn: Turn) -> AsyncIterator[str]:
        turns.append(str(turn.meeting.why))
        await asyncio.sleep(3)
        yield "and another thing"

    async def story(s: AsyncAgentService) -> None:
        meeting = await round_of(s)
        await s.meetings.pass_turn("ann", meeting, "agent:d")
        await asyncio.sleep(200)
        assert turns == ["floor", "refused", "refused"]
        await s.meetings.say("ann", meeting, "your turn")
        await asyncio.sleep(10)
        assert turns == ["floor", "refused", "refused", "floor"]
        view = await s.meetings.view("ann", meeting)
        assert (texts(view), len(view.refused)) == (["begin", "your turn", "and another thing"], 3)

    play(story, {**BRAINS, "slow": chatty})


def test_words_sent_in_the_middle_of_a_turn_are_refused_as_visibly() -> None:
    told: Told = []

    async def saying(turn: Turn) -> AsyncIterator[str]:
        told.append((str(turn.agent_id), str(turn.meeting.why), [one.text for one in turn.meeting.refused]))
        if turn.meeting.why == "floor":
            await asyncio.sleep(10)
            await turn.meeting.say("with a tool")
            await asyncio.sleep(10)
        yield ""

    async def story(s: AsyncAgentService) -> None:
        meeting = await round_of(s)
        await asyncio.sleep(1)
        await s.meetings.pass_turn("ann", meeting, "agent:d")
        await asyncio.sleep(30)
        view = await s.meetings.view("ann", meeting)
        assert refusals(view) == [("agent:ann/d", "said", "with a tool")]
        assert told == [("d", "floor", []), ("d", "refused", ["with a tool"])]
        [_, late] = await s.runs.list("ann", agent="d")
        assert [one.text for one in (await s.runs.get("ann", late.run_id)).refused] == ["with a tool"]

    play(story, {**BRAINS, "slow": saying})


@pytest.mark.parametrize("how", ["end", "kick", "leave"])
def test_words_of_a_participant_that_left_are_recorded_and_lead_to_no_turn(how: str) -> None:
    told: Told = []

    async def story(s: AsyncAgentService) -> None:
        meeting = await round_of(s)
        if how == "kick":
            await s.meetings.kick("ann", meeting, "agent:d", "too slow")
        elif how == "leave":
            await s.meetings.leave("ann", meeting, by="agent:d")
        else:
            await s.meetings.end("ann", meeting)
        view = await seen(s, meeting, lambda view: view.refused, "agent:ann/d")
        assert refusals(view) == [("agent:ann/d", "said", "too late")]
        await seen(s, meeting, over)
        await asyncio.sleep(300)
        assert [why for _, why, _ in told] == ["floor"]
        [run] = await s.runs.list("ann", agent="d")
        [refusal] = (await s.runs.get("ann", run.run_id)).refused
        assert refusal.text == "too late"
        assert {"end": "has ended", "kick": "was kicked", "leave": "not in the meeting"}[how] in refusal.reason

    play(story, speaker(told))


def test_a_late_move_is_refused_and_its_player_sees_it() -> None:
    told: Told = []

    async def thinker(turn: Turn) -> AsyncIterator[str]:
        told.append((str(turn.agent_id), str(turn.meeting.why), [one.text for one in turn.meeting.refused]))
        if turn.meeting.my_move and turn.meeting.why == "move" and not turn.meeting.view.misses:
            await asyncio.sleep(10)
            await turn.meeting.move({"cell": 5})
        yield ""

    async def story(s: AsyncAgentService) -> None:
        await team(s, "x", profile="thinker")
        meeting = await s.meetings.call(
            "ann",
            "a game",
            required=["agent:x"],
            game="tic-tac-toe",
            turn_timeout=2,
            max_misses=5,
            setting={"players": ["agent:x", "user:ann"]},
        )
        view = await seen(s, meeting, lambda view: [one for one in view.refused if one.kind == "moved"])
        assert [(one.sender, one.text) for one in view.refused if one.kind == "moved"] == [
            ("agent:ann/x", '{"cell": 5}')
        ]
        assert ("x", "move", ['{"cell": 5}']) in told or ("x", "refused", ['{"cell": 5}']) in told

    play(story, {**BRAINS, "thinker": thinker})


def test_a_person_is_refused_at_once() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "d")
        meeting = await s.meetings.call("ann", "news", required=["user:ann"], floor="round_robin", by="agent:d")
        await s.meetings.join("ann", meeting)
        with pytest.raises(roost.Forbidden, match="it is the turn of agent:d: wait for yours"):
            await s.meetings.say("ann", meeting, "me first")
        assert (await s.meetings.view("ann", meeting)).refused == ()

    play(story, {**BRAINS, "silent": BRAINS["broken"]})


def test_a_meeting_with_an_unknown_game_is_refused_in_the_turn_that_calls_it() -> None:
    async def caller(turn: Turn) -> AsyncIterator[str]:
        try:
            yield await turn.call_meeting("a game", game="chess")
        except roost.RoostError as error:
            yield str(error)

    async def story(s: AsyncAgentService) -> None:
        await team(s, "d", profile="caller")
        done = await s.tasks.wait("ann", await s.tasks.send("ann", "d", "play"))
        assert "the game 'chess' is not known" in str(done.result)

    play(story, {**BRAINS, "caller": caller})


def test_words_before_and_after_an_act_are_said_together_where_words_pass_the_floor_on() -> None:
    async def host(turn: Turn) -> AsyncIterator[str]:
        if turn.meeting.why == "floor" and not turn.state.get("spoke"):
            turn.state["spoke"] = True
            yield "Hello. "
            await turn.meeting.invite("agent:e")
            yield "I have invited e."

    async def story(s: AsyncAgentService) -> None:
        await team(s, "d", profile="host")
        await team(s, "e")
        meeting = await s.meetings.call("ann", "news", required=["user:ann"], floor="round_robin", by="agent:d")
        await s.meetings.join("ann", meeting)
        view = await seen(s, meeting, lambda view: view.said and len(view.participants) == 3)
        assert (texts(view), view.refused) == (["Hello. I have invited e."], ())

    play(story, {**BRAINS, "host": host})
