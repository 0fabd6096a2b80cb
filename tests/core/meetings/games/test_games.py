"""M7, M8: the state that all share, and tic-tac-toe."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.meetings.games import games
from roost.core.meetings.games.games import Outcome
from roost.core.meetings.games.registry import GAMES
from roost.core.meetings.games.tictactoe import ROWS, TicTacToe
from roost.core.meetings.log.bodies import Bounds, Ended, Moved, Said
from roost.core.meetings.view.fold import fold
from roost.core.meetings.view.view import Phase, View
from roost.errors import Forbidden, Invalid
from tests.core.meetings.cast import ADA, ANN, BEN, CAL, HOST, call
from tests.core.meetings.people import Person, Room, refusal, running

GAME = TicTacToe()


def playing(x: str = ADA, o: str = BEN, **more: Any) -> Room:
    return running(x, o, game="tic-tac-toe", setting={"players": [x, o]}, **more)


def move(room: Room, who: str, cell: int) -> str | None:
    head = room[who].view.head
    assert head is not None
    return room.tries(who, Moved(head, {"cell": cell}))


def board(view: View) -> str:
    return GAME.drawn(view.state)


@pytest.mark.parametrize("second", [BEN, ANN])
def test_a_whole_game_of_two_and_a_host_ends_alike_in_every_view(second: str) -> None:
    room = playing(ADA, second)
    for who, cell in [(ADA, 5), (second, 1), (ADA, 3), (second, 7), (ADA, 4), (second, 6), (ADA, 2), (second, 9)]:
        assert move(room, who, cell) is None
        room.post(HOST, Said(board(room.view)))
        assert str(room.view.outcome) == "None"
    assert move(room, ADA, 8) is None
    assert board(room.view) == " O | X | X\n---+---+---\n X | X | O\n---+---+---\n O | X | O"
    assert room.view.outcome == Outcome("agent:ann/ada wins with X.", ADA)
    assert "game is over" in str(move(room, second, 8))
    assert room.view.tries == 10


def test_nine_moves_without_three_in_a_row_are_a_draw() -> None:
    room = playing()
    for number, cell in enumerate([1, 2, 3, 5, 4, 6, 8, 7, 9]):
        assert move(room, (ADA, BEN)[number % 2], cell) is None
    assert room.view.outcome == Outcome("It is a draw.")
    assert room.view.state["next"] is None


def test_the_second_player_can_win_too() -> None:
    room = playing()
    for number, cell in enumerate([1, 7, 2, 8, 4, 9]):
        move(room, (ADA, BEN)[number % 2], cell)
    assert room.view.outcome == Outcome("agent:ann/ben wins with O.", BEN)


@pytest.mark.parametrize("row", ROWS)
def test_each_row_wins(row: tuple[int, int, int]) -> None:
    others = [cell for cell in range(1, 10) if cell not in row]
    state = GAME.initial({"players": [ADA, BEN]})
    for number in range(3):
        state = GAME.apply(state, ADA, {"cell": row[number]})
        if number < 2:
            assert GAME.outcome(state) is None
            state = GAME.apply(state, BEN, {"cell": others[number]})
    assert GAME.outcome(state) == Outcome("agent:ann/ada wins with X.", ADA)


def test_an_empty_board_shows_where_to_play() -> None:
    assert board(playing().view) == " 1 | 2 | 3\n---+---+---\n 4 | 5 | 6\n---+---+---\n 7 | 8 | 9"


def test_illegal_and_out_of_turn_moves_are_refused_and_say_what_would_be_legal() -> None:
    room = playing()
    assert "the turn of agent:ann/ada, who plays X" in str(move(room, BEN, 1))
    assert "does not play" in str(move(room, HOST, 1))
    assert move(room, ADA, 1) is None
    assert "the turn of agent:ann/ben" in str(move(room, ADA, 2))
    assert "cell 1 is taken by X: take one of 2, 3, 4, 5, 6, 7, 8, 9" in str(move(room, BEN, 1))
    assert "from 1 to 9" in str(move(room, BEN, 10))
    before = room.view.state
    head = room.view.head
    assert head is not None
    for junk in (None, 5, {"cell": True}, {"cell": 2, "more": 1}, {"cell": 2.0}, "x"):
        assert room.tries(BEN, Moved(head, junk)) is not None
    assert room.view.state == before


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_moves_that_answer_the_same_entry_one_is_legal_and_one_is_refused(first: int) -> None:
    """One player on two devices, say: whichever arrives first, all take the same one."""
    room = playing()
    head = room.view.head
    assert head is not None
    rivals = [room[ADA].write(Moved(head, {"cell": 5})), room[ADA].write(Moved(head, {"cell": 9}))]
    room.tell(rivals[first])
    room.tell(*rivals)
    assert [refusal(room.view, rival) is None for rival in rivals] == [True, False]
    assert "answers entry 2 of agent:ann/host" in str(refusal(room.view, rivals[1]))
    assert board(room.view).splitlines()[2] == " 4 | X | 6"


def test_of_two_players_who_move_at_once_the_first_in_order_moves() -> None:
    room = running(ADA, BEN, game="tic-tac-toe", setting={"players": [ADA, BEN]})
    move(room, ADA, 5)
    head = room.view.head
    assert head is not None
    rivals = [room[ADA].write(Moved(head, {"cell": 1})), room[BEN].write(Moved(head, {"cell": 1}))]
    room.tell(*rivals)
    assert "the turn of agent:ann/ben" in str(refusal(room.view, rivals[0]))
    assert refusal(room.view, rivals[1]) is None
    assert room.view.head == rivals[1].id


def test_a_move_that_answers_an_older_one_is_refused_everywhere() -> None:
    room = playing()
    start = room.view.head
    assert start is not None
    move(room, ADA, 1)
    assert "answers entry 2 of agent:ann/host, and the last one is entry 2 of agent:ann/ada" in str(
        room.tries(BEN, Moved(start, {"cell": 2}))
    )


def test_moves_need_no_floor_but_a_game_and_a_meeting_that_runs() -> None:
    room = running(ADA)
    head = room.view.head
    assert head is not None
    assert "has no game" in str(room.tries(ADA, Moved(head, 1)))
    room.post(HOST, Ended())
    assert "ended" in str(room.tries(ADA, Moved(head, 1)))


def test_no_moves_are_accepted_beyond_the_limit_and_anyone_may_end_the_game() -> None:
    room = playing(bounds=Bounds(moves=100))
    for _ in range(99):
        assert "the turn of" in str(move(room, BEN, 1))
    assert move(room, ADA, 1) is None
    assert room.view.tries == 100
    assert "its limit of moves" in str(move(room, BEN, 2))
    assert room.says(HOST, "enough") is None
    room.post(BEN, Ended())
    assert room.view.phase is Phase.ENDED
    assert room.view.outcome is None


def test_a_won_game_may_be_ended_by_anyone() -> None:
    room = playing()
    for number, cell in enumerate([1, 7, 2, 8, 3]):
        move(room, (ADA, BEN)[number % 2], cell)
    assert room.tries(BEN, Ended()) is None


@pytest.mark.parametrize(
    "setting",
    [
        None,
        {},
        {"players": [ADA]},
        {"players": [ADA, ADA]},
        {"players": [ADA, BEN, CAL]},
        {"players": ["ada", BEN]},
        {"players": [ADA, BEN], "size": 4},
    ],
)
def test_a_call_with_a_setting_that_the_game_cannot_use_is_void(setting: Any) -> None:
    host = Person(HOST)
    entry = host.write(call(game="tic-tac-toe", setting=setting))
    assert host.view.call is None
    assert refusal(host.view, entry)


def test_a_call_with_an_unknown_game_is_void() -> None:
    host = Person(HOST)
    entry = host.write(call(game="chess"))
    assert refusal(host.view, entry) == "the game 'chess' is not known: use one of tic-tac-toe"


class Count:
    """A game in which everyone adds; it breaks at 13 and spoils what it is given."""

    def initial(self, setting: Any) -> Any:
        return {"sum": 0, "by": ()}

    def apply(self, state: Any, author: str, move: Any) -> Any:
        state["by"].append(author)
        state["sum"] += move
        if state["sum"] == 7:
            raise Invalid("seven is unlucky: add something else")
        return {**state, "by": {1, 2} if state["sum"] == 13 else tuple(state["by"])}

    def outcome(self, state: Any) -> Outcome | None:
        return None

    def mover(self, state: Any) -> str | None:
        return None

    def forfeit(self, state: Any, who: str) -> Outcome:
        raise KeyError(who)

    def asked(self, state: Any) -> str:
        return "Add something."

    def read(self, text: str) -> Any | None:
        return None

    def drawn(self, state: Any) -> str:
        return str(state["sum"])


def test_whatever_a_game_does_wrong_stops_no_view() -> None:
    known = {"count": Count()}
    state = games.begin(known, "count", None)
    kept, _ = games.play(known, "count", state, ADA, 5)
    assert (state, kept) == ({"sum": 0, "by": []}, {"sum": 5, "by": [ADA]})
    for add, says in [(2, "seven is unlucky"), (8, "a JSON value"), ("x", "failed with TypeError")]:
        with pytest.raises(Forbidden, match=says):
            games.play(known, "count", kept, BEN, add)
    assert kept == {"sum": 5, "by": [ADA]}


def test_a_game_of_ones_own_is_given_to_the_fold() -> None:
    host = Person(HOST)
    host.write(call(game="count"))
    assert fold(host.log).call is None
    assert fold(host.log, {**GAMES, "count": Count()}).state == {"sum": 0, "by": []}


@given(st.lists(st.integers(0, 10), max_size=30), st.lists(st.booleans(), max_size=30))
def test_however_it_is_played_the_board_is_consistent(cells: list[int], turns: list[bool]) -> None:
    state = GAME.initial({"players": [ADA, BEN]})
    for cell, is_x in zip(cells, turns, strict=False):
        before = state
        try:
            state = GAME.apply(state, ADA if is_x else BEN, {"cell": cell})
        except Invalid:
            assert state == before
            continue
        crosses, noughts = state["board"].count("X"), state["board"].count("O")
        assert crosses - noughts in (0, 1)
        assert crosses + noughts == 9 - before["board"].count("") + 1
        assert (state["next"] is None) is (GAME.outcome(state) is not None)
        assert before["next"] is not None


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("5", 5),
        ("I take 5.", 5),
        ("5, yes 5", 5),
        ("10", 10),
        ("0", 0),
        ("", None),
        ("five", None),
        ("2 or 4", None),
        ("1234", None),
        ("X", None),
        ("٣", None),
    ],
)
def test_a_text_with_one_number_stands_for_that_cell(text: str, cell: int | None) -> None:
    assert GAME.read(text) == (None if cell is None else {"cell": cell})


@given(st.text())
def test_whatever_is_said_is_a_move_or_none(text: str) -> None:
    read = GAME.read(text)
    assert read is None or set(read) == {"cell"}
