"""M4–M7: the basics of meetings, one by one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Turn
from tests.runtime.conftest import World
from tests.runtime.meetings.meeting_rooms import (
    BRAINS,
    alike,
    all_see,
    heard,
    over,
    play,
    player,
    running,
    seen,
    silent,
    talker,
    team,
    texts,
)

pytestmark = pytest.mark.order


def test_ids_are_unique_and_the_owner_is_found() -> None:
    async def story(s: AsyncAgentService) -> None:
        first, second = await s.meetings.call("ann", "one"), await s.meetings.call("ann", "two")
        assert first != second
        [two, one] = await s.meetings.list("ann")
        assert (one.meeting_id, one.creator, one.topic) == (first, "user:ann", "one")
        assert (await s.meetings.view("ann", second)).creator == "user:ann"
        with pytest.raises(roost.NotFound):
            await s.meetings.view("bob", first)
        assert two.participant == "user:ann"

    play(story)


def test_participants_are_added_and_removed() -> None:
    async def story(s: AsyncAgentService) -> None:
        d, e = await team(s, "d", "e")
        meeting = await s.meetings.call("ann", "news", required=["agent:d"])
        await seen(s, meeting, running)
        await s.meetings.invite("ann", meeting, "agent:e")
        await all_see(s, meeting, ["user:ann", d, e], lambda view: view.present == ("user:ann", d, e))
        await s.meetings.leave("ann", meeting, by="agent:e")
        await all_see(s, meeting, ["user:ann", d], lambda view: view.present == ("user:ann", d))
        view = await s.meetings.view("ann", meeting)
        assert [(one.address, one.status) for one in view.participants if one.address == e] == [(e, "left")]

    play(story)


def test_the_creator_is_in_at_once_and_those_invited_are_pending() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "d", "e", start=False)
        meeting = await s.meetings.call("ann", "news", required=["agent:d"], optional=["agent:e"])
        view = await s.meetings.view("ann", meeting)
        assert [(one.address, one.status, one.required) for one in view.participants] == [
            ("user:ann", "in", False),
            ("agent:ann/d", "invited", True),
            ("agent:ann/e", "invited", False),
        ]
        assert (view.phase, view.present) == ("calling", ("user:ann",))

    play(story)


def test_a_message_enters_every_members_history_with_its_sender() -> None:
    async def story(s: AsyncAgentService) -> None:
        d, e = await team(s, "d", "e")
        meeting = await s.meetings.call("ann", "news", required=["agent:d", "agent:e"])
        await seen(s, meeting, running)
        said = await s.meetings.say("ann", meeting, "hello")
        view = await all_see(s, meeting, ["user:ann", d, e], lambda view: view.said == 1)
        assert view.words == (said,)
        assert (said.sender, said.text, said.number) == ("user:ann", "hello", 1)

    play(story)


def test_a_broadcast_reaches_all_but_the_sender_once_each() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "d", "e", "f")
        meeting = await s.meetings.call("ann", "news", required=["agent:d", "agent:e", "agent:f"])
        await seen(s, meeting, lambda view: running(view) and len(view.present) == 4)
        await s.meetings.say("ann", meeting, "listen", by="agent:d")
        await asyncio.sleep(10)
        assert [await heard(s, name) for name in ("d", "e", "f")] == [[], *[["agent:ann/d: listen"]] * 2]

    play(story)


def test_the_whole_flow_of_invitations() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "yes")
        await team(s, "no", invitations="decline")
        meeting = await s.meetings.call("ann", "news", required=["agent:yes"], optional=["agent:no"])
        view = await seen(s, meeting, lambda view: "declined" in [one.status for one in view.participants])
        view = await seen(s, meeting, running)
        assert [one.status for one in view.participants] == ["in", "in", "declined"]
        await s.meetings.join("ann", meeting, by="agent:no")  # it may still think better of it
        await seen(s, meeting, lambda view: len(view.present) == 3)

    play(story)


def test_of_three_members_one_is_removed_and_two_are_left() -> None:
    async def story(s: AsyncAgentService) -> None:
        d, e = await team(s, "d", "e")
        meeting = await s.meetings.call("ann", "news", required=["agent:d", "agent:e"])
        await seen(s, meeting, running)
        await s.meetings.kick("ann", meeting, "agent:d", "too loud")
        view = await all_see(s, meeting, ["user:ann", e], lambda view: view.present == ("user:ann", e))
        assert [(one.status, one.reason) for one in view.participants] == [
            ("in", ""),
            ("kicked", "too loud"),
            ("in", ""),
        ]
        assert (await seen(s, meeting, lambda view: view.status == "kicked", d)).present == ("user:ann", e)
        with pytest.raises(roost.Forbidden, match=r"agent:d was kicked \(too loud\): ask user:ann"):
            await s.meetings.say("ann", meeting, "but", by="agent:d")
        assert (await s.agents.get("ann", "d")).meetings == ()

    play(story)


async def host(turn: Turn) -> AsyncIterator[str]:
    if turn.kind == "task":
        players = ["agent:x", "agent:o"]
        yield await turn.call_meeting(
            "A game", required=players, game="tic-tac-toe", setting={"players": players}, deadline=30.0
        )
    elif turn.meeting.why == "over":
        yield f"{turn.meeting.view.outcome.text}"  # type: ignore[union-attr]
        await turn.meeting.end()


def test_a_full_game_has_the_exact_board_and_winner_in_every_view(world: World) -> None:
    async def story(s: AsyncAgentService) -> None:
        everyone = [*await team(s, "x", "o", profile="player"), *await team(s, "host", profile="host")]
        task = await s.tasks.wait("ann", await s.tasks.send("ann", "host", "play"), 10)
        view = await all_see(s, str(task.result), everyone, over)
        assert view.state["board"] == ["X", "O", "X", "O", "X", "O", "X", "", ""]
        assert (view.winner, view.moves) == ("agent:ann/x", 7)
        assert texts(view) == ["agent:ann/x wins with X."]
        assert "agent:x wins with X." in await s.meetings.minutes("ann", view.meeting_id)

    world({**BRAINS, "host": host, "player": player}, story)


def test_the_initiator_is_not_awaited() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "d")
        meeting = await s.meetings.call("ann", "news", required=["agent:d"])
        view = await seen(s, meeting, running)
        assert [one.required for one in view.participants] == [False, True]
        alone = await s.meetings.view("ann", await s.meetings.call("ann", "alone"))
        assert running(alone)  # nobody has to come

    play(story)


def test_topic_and_attendees_reach_the_brain() -> None:
    given: list[tuple[object, ...]] = []

    async def curious(turn: Turn) -> AsyncIterator[str]:
        m = turn.meeting
        given.append((turn.kind, turn.text, turn.sender, m.topic, m.attendees, m.me, m.chair, m.is_chair, str(m.why)))
        assert m.topic in m.prompt
        assert "user:ann: hi" in m.prompt
        yield ""

    async def story(s: AsyncAgentService) -> None:
        await s.agents.create("ann", "d", profile="curious")
        meeting = await s.meetings.call("ann", "The roof", required=["agent:d"])
        await seen(s, meeting, running)
        await s.meetings.say("ann", meeting, "hi")
        await asyncio.sleep(3)

    play(story, {"curious": curious})
    people = ("user:ann", "agent:ann/d")
    assert given == [("meeting", "hi", "user:ann", "The roof", people, "agent:ann/d", "user:ann", False, "words")]


def test_an_agents_own_state_lists_the_meetings_it_is_in() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "d")
        one, two = [await s.meetings.call("ann", topic, required=["agent:d"]) for topic in ("one", "two")]
        for meeting in (one, two):
            await seen(s, meeting, running, "agent:d")
        assert (await s.agents.get("ann", "d")).meetings == (two, one)
        assert (await s.agents.inspect("ann", "d")).agent.meetings == (two, one)
        await s.meetings.end("ann", one)
        await seen(s, one, over, "agent:d")
        assert [agent.meetings for agent in await s.agents.list("ann")] == [(two,)]

    play(story)


# --- what else a meeting is ----------------------------------------------------------------------------


def test_a_standup_goes_round_and_each_speaks_in_turn(world: World) -> None:
    async def story(s: AsyncAgentService) -> None:
        everyone = await team(s, "a", "b", "c", profile="talker")
        meeting = await s.meetings.call(
            "ann", "standup", required=["agent:b", "agent:c"], floor="round_robin", max_words=6, by="agent:a"
        )
        view = await all_see(s, meeting, everyone, over)
        assert texts(view) == ["a 1", "b 1", "c 1", "a 2", "b 2", "c 2"]
        assert view.phase == "ended"

    world({"talker": talker}, story)


def test_an_empty_answer_passes_the_floor() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "a", "c", profile="talker")
        await team(s, "b")
        meeting = await s.meetings.call(
            "ann", "standup", required=["agent:b", "agent:c"], floor="round_robin", max_words=4, by="agent:a"
        )
        assert texts(await seen(s, meeting, over, "agent:b")) == ["a 1", "c 1", "a 2", "c 2"]

    play(story)


def test_silent_participants_do_not_pass_the_floor_endlessly() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "a", "b")
        options: dict[str, Any] = {"required": ["agent:b"], "floor": "round_robin", "by": "agent:a"}
        meeting = await s.meetings.call("ann", "silence", max_words=3, **options)
        assert texts(await seen(s, meeting, over, "agent:b")) == []

    play(story)


def test_a_brain_without_the_floor_raises_a_hand_and_speaks_when_it_is_its_turn() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "a", "b", profile="talker")
        people = ["agent:a", "agent:b"]
        meeting = await s.meetings.call("ann", "questions", required=people, floor="raise_hand", max_words=3)
        await seen(s, meeting, running)
        await s.meetings.raise_hand("ann", meeting)
        await s.meetings.say("ann", meeting, "who knows?")
        view = await seen(s, meeting, over)
        assert sorted(word.sender for word in view.words) == ["agent:ann/a", "agent:ann/b", "user:ann"]

    play(story)


def test_the_moderator_is_asked_when_hands_are_up_and_gives_the_floor() -> None:
    async def moderator(turn: Turn) -> AsyncIterator[str]:
        if turn.meeting.why == "hands":
            await turn.meeting.grant(turn.meeting.view.floor.hands[0])
        yield "begin" if turn.meeting.why == "opening" else ""

    async def story(s: AsyncAgentService) -> None:
        await s.agents.create("ann", "m", profile="moderator")
        await team(s, "a", profile="talker")
        meeting = await s.meetings.call("ann", "panel", required=["agent:a"], floor="moderator", by="agent:m")
        view = await seen(s, meeting, lambda view: view.said >= 2)
        assert texts(view)[:2] == ["begin", "a 2"]  # what it said without the floor was a raised hand

    play(story, {**BRAINS, "moderator": moderator})


def test_only_those_mentioned_are_asked_where_mentions_give_the_floor() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "a", "b", profile="talker")
        meeting = await s.meetings.call("ann", "ask", required=["agent:a", "agent:b"], floor="mention")
        await seen(s, meeting, running)
        await s.meetings.say("ann", meeting, "b, what do you think?", to=["agent:b"])
        await asyncio.sleep(5)
        assert texts(await s.meetings.view("ann", meeting)) == ["b, what do you think?", "b 1"]
        with pytest.raises(roost.Forbidden, match="only mentioned participants may speak"):
            await s.meetings.say("ann", meeting, "me too", by="agent:a")

    play(story)


def test_words_yielded_before_something_is_done_are_said_before_it() -> None:
    async def closing(turn: Turn) -> AsyncIterator[str]:
        yield "let us go home"
        await turn.meeting.end("nothing new")

    async def story(s: AsyncAgentService) -> None:
        await s.agents.create("ann", "d", profile="closing")
        await team(s, "e")
        meeting = await s.meetings.call("ann", "short", required=["agent:e"], by="agent:d")
        view = await all_see(s, meeting, ["agent:d", "agent:e"], over)
        assert (texts(view), view.minutes) == (["let us go home"], "nothing new")

    play(story, {**BRAINS, "closing": closing})


def test_illegal_and_out_of_turn_moves_are_refused_at_once_and_change_nothing() -> None:
    async def story(s: AsyncAgentService) -> None:
        [d] = await team(s, "d")
        players = {"players": ["user:ann", "agent:d"]}
        meeting = await s.meetings.call("ann", "game", required=["agent:d"], game="tic-tac-toe", setting=players)
        await seen(s, meeting, running, d)
        for by, move in ((d, {"cell": 1}), (None, {"cell": 10}), (None, "corner")):
            with pytest.raises((roost.Forbidden, roost.Invalid)):
                await s.meetings.move("ann", meeting, move, by=by)
        view = await s.meetings.move("ann", meeting, {"cell": 5})
        assert (view.mover, view.moves, view.state["board"][4]) == (d, 1, "X")
        with pytest.raises(roost.Forbidden, match="cell 5 is taken"):
            await s.meetings.move("ann", meeting, {"cell": 5}, by="agent:d")

    play(story)


def test_an_invalid_move_raises_in_the_brain() -> None:
    told: list[str] = []

    async def clumsy(turn: Turn) -> AsyncIterator[str]:
        if turn.meeting.my_move:
            try:
                await turn.meeting.move({"cell": 99})
            except roost.RoostError as error:
                told.append(str(error))
            await turn.meeting.move({"cell": 1})
        yield ""

    async def story(s: AsyncAgentService) -> None:
        await s.agents.create("ann", "d", profile="clumsy")
        players = {"players": ["agent:d", "user:ann"]}
        meeting = await s.meetings.call("ann", "game", required=["agent:d"], game="tic-tac-toe", setting=players)
        view = await seen(s, meeting, lambda view: view.moves == 1)
        assert view.mover == "user:ann"

    play(story, {"clumsy": clumsy})
    assert ["the cell must be a whole number from 1 to 9" in one for one in told] == [True]


def test_after_a_game_someone_may_still_speak_and_then_it_ends_by_itself() -> None:
    async def story(s: AsyncAgentService) -> None:
        everyone = await team(s, "x", "o", profile="player")
        people = {"players": ["agent:x", "agent:o"]}
        meeting = await s.meetings.call(
            "ann", "game", required=["agent:o"], game="tic-tac-toe", setting=people, by="agent:x"
        )
        view = await all_see(s, meeting, everyone, over)
        assert (view.phase, view.winner) == ("ended", "agent:ann/x")

    play(story)


def test_a_person_waits_for_news_and_watches_to_the_end(world: World) -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "d")
        meeting = await s.meetings.call("ann", "news", required=["agent:d"])
        start = await seen(s, meeting, running)
        assert (await s.meetings.wait("ann", meeting, start.cursor, timeout=0.01)).cursor == start.cursor
        waiting = asyncio.get_running_loop().create_task(s.meetings.wait("ann", meeting, start.cursor))
        await asyncio.sleep(0.05)
        assert not waiting.done(), "nothing has happened"
        phases: list[tuple[str, int]] = []

        async def watch() -> None:
            async for view in s.meetings.watch("ann", meeting):
                phases.append((view.phase, view.said))

        watching = asyncio.get_running_loop().create_task(watch())
        await s.meetings.say("ann", meeting, "one")
        assert (await waiting).cursor != start.cursor
        await s.meetings.end("ann", meeting)
        await watching
        assert phases[-1] == ("ended", 1)
        assert phases == sorted(set(phases), key=phases.index)

    world({"silent": silent}, story)


def test_bad_input_of_every_kind_is_refused_and_changes_nothing() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "d")
        await s.agents.create("bob", "own")
        refused = [
            s.meetings.call("ann", ""),
            s.meetings.call("ann", "x", required="agent:d"),
            s.meetings.call("ann", "x", floor="chaos"),
            s.meetings.call("ann", "x", game="chess"),
            s.meetings.call("ann", "x", required=["agent:d", "agent:d"]),
            s.meetings.call("ann", "x", deadline=-1),
            s.meetings.call("ann", "x", required=["user:ann"]),
            s.meetings.call("ann", "x", max_words=0),
            s.meetings.call("ann", "x", required=["agent:nobody"]),
            s.meetings.call("ann", "x", required=["user:bob"]),
            s.meetings.call("ann", "x", required=["agent:bob/own"]),
            s.meetings.call("ann", "x", by="agent:bob/own"),
            s.meetings.call("ann", "x", game="tic-tac-toe", setting={"players": ["agent:d"]}),
            s.meetings.say("ann", "meeting_never", "x"),
            s.meetings.view("ann", "meeting_never"),
            s.meetings.list("ann", phase="over"),
            s.meetings.list("ann", limit=0),
            s.meetings.join("ann", "never"),
        ]
        for call in refused:
            with pytest.raises((roost.Invalid, roost.NotFound, roost.Forbidden)):
                await call
        assert await s.meetings.list("ann") == []
        meeting = await s.meetings.call("ann", "x", required=["agent:d"])
        await seen(s, meeting, running)
        before = await s.meetings.view("ann", meeting)
        for call in (
            s.meetings.say("ann", meeting, ""),
            s.meetings.say("ann", meeting, "x", to="agent:d"),
            s.meetings.raise_hand("ann", meeting),
            s.meetings.grant("ann", meeting, "agent:d"),
            s.meetings.move("ann", meeting, 1),
            s.meetings.kick("ann", meeting, "agent:e"),
            s.meetings.invite("ann", meeting, "agent:d"),
            s.meetings.invite("ann", meeting, "agent:e"),
            s.meetings.decline("ann", meeting),
            s.meetings.join("ann", meeting),
        ):
            with pytest.raises((roost.Invalid, roost.NotFound, roost.Forbidden)):
                await call
        assert alike(await s.meetings.view("ann", meeting)) == alike(before)

    play(story)


def test_the_same_key_again_is_the_same_call_and_the_same_words() -> None:
    async def story(s: AsyncAgentService) -> None:
        meeting = await s.meetings.call("ann", "once", key="k")
        assert await s.meetings.call("ann", "once", key="k") == meeting
        with pytest.raises(roost.Conflict):
            await s.meetings.call("ann", "twice", key="k")
        said = await s.meetings.say("ann", meeting, "hello", key="w")
        assert await s.meetings.say("ann", meeting, "hello", key="w") == said
        with pytest.raises(roost.Conflict):
            await s.meetings.say("ann", meeting, "something else", key="w")
        with pytest.raises(roost.Conflict):
            await s.meetings.say("ann", meeting, "hello", to=["agent:d"], key="w")
        assert texts(await s.meetings.view("ann", meeting)) == ["hello"]

    play(story)


def test_the_same_key_again_is_the_same_move_and_a_call_with_other_guests_is_another() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "d", profile="silent")
        game: dict[str, Any] = {"game": "tic-tac-toe", "setting": {"players": ["user:ann", "agent:d"]}, "key": "k"}
        meeting = await s.meetings.call("ann", "game", required=["agent:d"], **game)
        await seen(s, meeting, running)
        await asyncio.sleep(1)
        assert await s.meetings.call("ann", "game", required=["agent:d"], **game) == meeting
        with pytest.raises(roost.Conflict, match="used for another meeting"):
            await s.meetings.call("ann", "game", optional=["agent:d"], **game)
        await s.meetings.move("ann", meeting, {"cell": 5}, key="m")
        assert (await s.meetings.move("ann", meeting, {"cell": 5}, key="m")).moves == 1
        for other in ({"cell": 1}, {"cell": object()}):
            with pytest.raises(roost.Conflict, match="used for something else"):
                await s.meetings.move("ann", meeting, other, key="m")
        with pytest.raises(roost.Conflict, match="used for something else"):
            await s.meetings.say("ann", meeting, "5", key="m")
        view = await s.meetings.view("ann", meeting)
        assert (view.moves, view.state["board"][4], view.said) == (1, "X", 0)

    play(story)


def test_an_owner_may_join_meetings_of_their_agents_and_a_stranger_may_not() -> None:
    async def story(s: AsyncAgentService) -> None:
        await team(s, "d", "e")
        meeting = await s.meetings.call("ann", "agents only", required=["agent:e"], by="agent:d")
        await seen(s, meeting, running, "agent:d")
        with pytest.raises(roost.NotFound):
            await s.meetings.join("bob", meeting)
        assert (await s.meetings.join("ann", meeting)).status == "in"
        await s.meetings.say("ann", meeting, "hello, both")
        await all_see(s, meeting, ["user:ann", "agent:d", "agent:e"], lambda view: view.said == 1)

    play(story)


def test_anyone_may_join_an_open_meeting() -> None:
    async def story(s: AsyncAgentService) -> None:
        meeting = await s.meetings.call("ann", "open house", open=True)
        await s.meetings.say("ann", meeting, "come in")
        view = await s.meetings.join("bob", meeting)
        assert (view.status, texts(view)) == ("in", ["come in"])
        await s.meetings.say("bob", meeting, "thank you")
        assert texts(await s.meetings.view("ann", meeting)) == ["come in", "thank you"]

    play(story)


@pytest.mark.parametrize("user", [[], None, "\ud800", "a\0"])
def test_an_invalid_user_id_is_refused_before_any_query(world: World, user: Any) -> None:
    async def story(service: AsyncAgentService) -> None:
        face = service.meetings
        for asked in (face.invite, face.kick, face.grant):
            with pytest.raises(roost.Invalid, match="user id"):
                await asked(user, "meeting_1", "agent:d")
        with pytest.raises(roost.Invalid, match="meeting id"):
            await face.wait("ann", user, "0", timeout=0)

    world({}, story)
