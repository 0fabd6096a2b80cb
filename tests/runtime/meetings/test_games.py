"""M8: tic-tac-toe between agents, with a host and with a person; and a standup. The same in every view."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Brain, MeetingView, Turn
from roost.demos import brains as demos
from tests.runtime.conftest import World, becomes

pytestmark = pytest.mark.order

PLAYERS = ["agent:ann/bold", "agent:ann/shy"]


def liking(*cells: int) -> Brain:
    async def player(turn: Turn) -> AsyncIterator[str]:
        if turn.kind == "meeting" and turn.meeting.my_move:
            board = turn.meeting.state["board"]
            await turn.meeting.move({"cell": next(cell for cell in cells if not board[cell - 1])})
            yield ""

    return player


async def game(service: AsyncAgentService, x: str, o: str, max_moves: int = 100) -> str:
    """A game of these two has been called by the host."""
    for name in ("host", "bold", "shy"):
        await service.agents.create("ann", name, profile=name)
    return await service.meetings.call(
        "ann",
        "A game",
        required=[x, o],
        game="tic-tac-toe",
        setting={"players": [x, o]},
        by="agent:host",
        max_moves=max_moves,
    )


async def seen(service: AsyncAgentService, meeting: str, by: Sequence[str]) -> list[MeetingView]:
    """Return the last view of each of them."""
    views = []
    for who in by:
        over = [view async for view in service.meetings.watch("ann", meeting, seen_by=who)]
        views.append(over[-1])
    return views


def played(world: World, bold: Brain, shy: Brain, max_moves: int = 100) -> MeetingView:
    """A game of two agents to its end, which is the same in every view."""

    async def story(service: AsyncAgentService) -> list[MeetingView]:
        meeting = await game(service, "agent:bold", "agent:shy", max_moves)
        return await seen(service, meeting, ["agent:host", *PLAYERS])

    views = world({"host": demos.host, "bold": bold, "shy": shy}, story)
    facts = {(one.board, one.outcome, one.winner, one.phase, one.words, one.minutes) for one in views}
    assert (len(views), len(facts)) == (3, 1)
    return views[0]


def test_a_game_ends_with_the_same_board_and_winner_in_every_view(world: World) -> None:
    over = played(world, liking(5, 1, 9), liking(2, 4, 6))
    assert over.board == " X | O | 3\n---+---+---\n O | X | 6\n---+---+---\n 7 | 8 | X"
    assert (over.outcome, over.winner) == ("agent:ann/bold wins with X.", "agent:ann/bold")
    assert [word.sender for word in over.words] == ["agent:ann/host"] * 2
    assert over.words[1].text == over.minutes == over.outcome


def test_a_player_may_try_moves_on_the_board_it_is_given(simulated: World) -> None:
    tried: list[str] = []

    async def thinker(turn: Turn) -> AsyncIterator[str]:
        if turn.kind == "meeting" and turn.meeting.my_move:
            tried.append(turn.meeting.board)
            turn.meeting.state["board"][:] = ["X"] * 9
            await turn.meeting.move({"cell": (5, 1, 9)[len(tried) - 1]})
            yield ""

    over = played(simulated, thinker, liking(2, 4, 6))
    assert over.board == " X | O | 3\n---+---+---\n O | X | 6\n---+---+---\n 7 | 8 | X"
    assert len(tried) == 3


def test_a_draw_is_announced(world: World) -> None:
    over = played(world, liking(5, 3, 4, 2, 9), liking(1, 7, 6, 8))
    assert over.board == " O | X | X\n---+---+---\n X | X | O\n---+---+---\n O | O | X"
    assert (over.outcome, over.winner, over.minutes) == ("It is a draw.", None, "It is a draw.")


def test_a_game_that_reaches_its_move_limit_has_no_winner(world: World) -> None:
    over = played(world, liking(5, 1, 9), liking(2, 4, 6), max_moves=4)
    assert over.board == " X | O | 3\n---+---+---\n O | X | 6\n---+---+---\n 7 | 8 | 9"
    assert (over.moves, over.mover, over.winner, over.phase) == (4, None, None, "ended")
    assert over.minutes.startswith("Nobody wins")


def test_invalid_moves_are_refused_in_every_view_and_the_game_continues(world: World) -> None:
    refused: list[str] = []

    async def clumsy(turn: Turn) -> AsyncIterator[str]:
        if turn.kind != "meeting" or not turn.meeting.my_move:
            return
        board = turn.meeting.state["board"]
        right = demos.chosen(board, turn.meeting.state["next"], 3)
        taken = [cell for cell in range(1, 10) if board[cell - 1]]
        moves: list[Any] = [{"cell": taken[0] if taken else 10}, {"cell": "5"}, [], {"cell": right}, {"cell": right}]
        for move in moves:
            try:
                await turn.meeting.move(move)
            except roost.Forbidden as error:
                refused.append(str(error).partition(":")[0])
        yield ""

    over = played(world, clumsy, clumsy)
    assert over.outcome is not None
    assert over.moves == sum(mark != "" for mark in over.state["board"])
    assert {"it is the turn of agent", 'a move is {"cell"'} <= set(refused)
    assert any(why.startswith("cell ") and "is taken by" in why for why in refused)


def test_a_brain_that_only_speaks_plays_by_saying_the_number_of_a_cell(simulated: World) -> None:
    prompts: list[str] = []

    def saying(*replies: str) -> Brain:
        async def speaker(turn: Turn) -> AsyncIterator[str]:
            if turn.kind == "meeting" and turn.meeting.my_move:
                prompts.append(turn.meeting.prompt)
                turn.state["said"] = turn.state.get("said", 0) + 1
                yield replies[turn.state["said"] - 1]

        return speaker

    over = played(simulated, saying("I take 5.", "1", "9 it is"), saying("2 or 4?", "5!", "2", "Then 4, I think."))
    assert over.board == " X | O | 3\n---+---+---\n O | X | 6\n---+---+---\n 7 | 8 | X"
    assert over.winner == "agent:ann/bold"
    words = [word.text for word in over.words if word.sender == "agent:ann/shy"]
    taken = "5! (refused: cell 5 is taken by X: take one of 1, 2, 3, 4, 6, 7, 8, 9)"
    assert words == ["2 or 4?", taken, "2", "Then 4, I think."]
    reminder = "agent:ann/shy, it is your move. You play O. Say the number of the cell you take, and no other: "
    assert f"{reminder}1, 2, 3, 4, 6, 7, 8, 9." in [word.text for word in over.words]
    assert prompts[0].endswith(
        "It is your move. You play X. Say the number of the cell you take, and no other: 1, 2, 3, 4, 5, 6, 7, 8, 9."
    )
    assert "agent:ann/bold: I take 5." in prompts[-1].partition("Said before:\n")[2]


def test_a_player_that_talks_and_never_moves_is_reminded_and_then_loses(simulated: World) -> None:
    async def talker(turn: Turn) -> AsyncIterator[str]:
        if turn.kind == "meeting" and turn.meeting.my_move:
            yield "Let me think."

    over = played(simulated, talker, talker)
    assert over.minutes == "It was not played to its end."
    assert sum(word.text.startswith("agent:ann/bold, it is your move.") for word in over.words) == 3


def test_a_person_plays_against_an_agent(world: World) -> None:
    ready: list[str] = []

    async def shy(turn: Turn) -> AsyncIterator[str]:
        """Move after the person has tried to move once more."""
        if turn.kind == "meeting" and turn.meeting.my_move:
            while not ready:  # noqa: ASYNC110 — an event of asyncio belongs to one loop
                await asyncio.sleep(0.01)
            ready.clear()
            board = turn.meeting.state["board"]
            await turn.meeting.move({"cell": next(cell for cell in (2, 4, 6) if not board[cell - 1])})
            yield ""

    async def story(service: AsyncAgentService) -> tuple[list[MeetingView], list[str]]:
        meeting = await game(service, "user:ann", "agent:shy")
        why = []

        async def move(cell: int, by: str | None = None) -> None:
            try:
                await service.meetings.move("ann", meeting, {"cell": cell}, by=by)
            except roost.Forbidden as refused:
                why.append(str(refused))

        await service.meetings.join("ann", meeting)
        for cell in (5, 1, 9):
            mine = await becomes(lambda: service.meetings.view("ann", meeting), lambda view: view.mover == "user:ann")
            if any(mine.state["board"]):
                await move(5)
            await move(3, by="agent:host")
            await move(cell)
            if cell != 9:
                await move(7)
                ready.append("now")
        return await seen(service, meeting, ["user:ann", "agent:host", "agent:shy"]), why

    views, why = world({"host": demos.host, "bold": liking(), "shy": shy}, story)
    assert {one.board for one in views} == {" X | O | 3\n---+---+---\n O | X | 6\n---+---+---\n 7 | 8 | X"}
    assert {one.winner for one in views} == {"user:ann"}
    assert [one.partition(":")[0] for one in why if "taken" in one] == ["cell 5 is taken by X"] * 2
    assert sum("agent:host does not play" in one for one in why) == 3
    assert sum("it is the turn of agent:shy" in one for one in why) == 2


def test_five_report_one_after_the_other_and_one_writes_the_minutes(world: World) -> None:
    names = ["wren", "robin", "magpie", "heron", "swift"]

    async def story(service: AsyncAgentService) -> list[MeetingView]:
        await service.agents.create_many("ann", names, profile="reporter")
        await service.agents.set_state("ann", "heron", {"report": "I am blocked."})
        chair, *others = (f"agent:{name}" for name in names)
        meeting = await service.meetings.call("ann", "Standup", required=others, floor="round_robin", by=chair)
        return await seen(service, meeting, [chair, *others])

    views = world({"reporter": demos.reporter}, story)
    assert {tuple(word.sender for word in one.words) for one in views} == {tuple(f"agent:ann/{name}" for name in names)}
    assert {one.minutes for one in views} == {"5 have reported.\nBlocked: agent:ann/heron: I am blocked."}


def test_a_scripted_player_wins_if_it_can_and_blocks_if_it_must() -> None:
    assert demos.chosen(["X", "X", "", "O", "O", "", "", "", ""], "X", 0) == 3
    assert demos.chosen(["X", "X", "", "O", "", "", "", "", ""], "O", 0) == 3


async def silent(turn: Turn) -> AsyncIterator[str]:
    yield ""


def test_a_silent_player_is_asked_twice_and_loses(simulated: World) -> None:
    asked: list[str] = []

    async def dreamer(turn: Turn) -> AsyncIterator[str]:
        if turn.kind == "meeting" and turn.meeting.why == "move":
            asked.append(turn.meeting.prompt.rpartition("\n")[2])
        yield ""

    over = played(simulated, liking(5, 1, 9), dreamer)
    assert (over.outcome, over.winner) == ("agent:ann/shy did not move: agent:ann/bold wins with X.", "agent:ann/bold")
    assert over.words[-1].text == over.minutes == over.outcome
    assert len(asked) == 2
    assert asked[0].startswith("It is your move. You play O.")
    assert asked[1].endswith("You did not move in time: if that happens again, you lose.")


def test_a_game_ends_when_it_is_the_turn_of_a_stopped_player(simulated: World) -> None:
    async def story(service: AsyncAgentService) -> list[MeetingView]:
        meeting = await game(service, "user:ann", "agent:shy")
        await service.meetings.join("ann", meeting)
        await becomes(lambda: service.meetings.view("ann", meeting), lambda view: view.mover == "user:ann")
        await service.agents.stop("ann", "shy")
        assert (await service.meetings.view("ann", meeting)).outcome is None, "it may be back in time"
        await service.meetings.move("ann", meeting, {"cell": 5})
        return await seen(service, meeting, ["user:ann", "agent:host"])

    for over in simulated({"host": demos.host, "bold": silent, "shy": silent}, story):
        assert over.outcome == "agent:ann/shy did not move: user:ann wins with X."
        assert "did not move" in over.minutes


def test_a_host_that_was_busy_at_the_start_still_opens_the_game(simulated: World) -> None:
    async def host(turn: Turn) -> AsyncIterator[str]:
        if turn.kind == "task":
            await asyncio.sleep(3)
        elif turn.meeting.why == "opening":
            yield "Welcome."

    async def chatty(turn: Turn) -> AsyncIterator[str]:
        await asyncio.sleep(2)
        if turn.kind == "meeting" and turn.meeting.my_move:
            yield str(turn.meeting.state["board"].index("") + 1)

    async def story(service: AsyncAgentService) -> list[MeetingView]:
        await service.agents.create("ann", "host", profile="host", max_concurrent_tasks=1)
        await service.agents.create_many("ann", ["bold", "shy"], profile="chatty")
        await service.tasks.send("ann", "host", "something long")
        players = ["agent:bold", "agent:shy"]
        meeting = await service.meetings.call(
            "ann", "A game", required=players, game="tic-tac-toe", setting={"players": players}, by="agent:host"
        )
        return [
            await becomes(
                lambda: service.meetings.view("ann", meeting),
                lambda view: any(word.text == "Welcome." for word in view.words),
            )
        ]

    [view] = simulated({"host": host, "chatty": chatty}, story)
    assert view.words[0].text != "Welcome.", "the others were not quicker"
