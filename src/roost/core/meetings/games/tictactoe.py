"""Tic-tac-toe: two players, nine cells, three in a row."""

from __future__ import annotations

import re
from typing import Any

from roost.core.meetings.games.games import Outcome
from roost.core.meetings.log.shapes import address
from roost.core.values import checks
from roost.errors import Invalid

MARKS = ("X", "O")
ROWS = ((1, 2, 3), (4, 5, 6), (7, 8, 9), (1, 4, 7), (2, 5, 8), (3, 6, 9), (1, 5, 9), (3, 5, 7))

_NUMBER = re.compile(r"(?<![0-9])[0-9]{1,3}(?![0-9])")


class TicTacToe:
    """The setting is `{"players": [X, O]}`, two addresses; a move is `{"cell": 5}`, from 1, top left, to 9.

    The state is `{"players": [X, O], "board": [nine of "X", "O" and ""], "next": "X"}`; `next` is None at the end.
    """

    def initial(self, setting: Any) -> Any:
        match setting:
            case {"players": [str(x), str(o)], **rest} if not rest and x != o:
                players = [address(x, "the player X"), address(o, "the player O")]
                return {"players": players, "board": [""] * 9, "next": "X"}
        named = setting.get("players") if isinstance(setting, dict) else None
        found = ", ".join(map(str, named)) if isinstance(named, list) and named else "nobody"
        raise Invalid(f"tic-tac-toe needs two players, X and O, and has {found:.200}: name two as its `players`")

    def apply(self, state: Any, author: str, move: Any) -> Any:
        cell = self._cell(move)
        board, mark = state["board"], state["next"]
        if mark is None:
            raise Invalid("the game is over: no more moves")
        if author not in state["players"]:
            raise Invalid(f"{author} does not play: {' and '.join(state['players'])} do")
        if author != (player := state["players"][MARKS.index(mark)]):
            raise Invalid(f"it is the turn of {player}, who plays {mark}: wait for that move")
        if board[cell - 1]:
            raise Invalid(f"cell {cell} is taken by {board[cell - 1]}: take one of {_free(board)}")
        board = [*board[: cell - 1], mark, *board[cell:]]
        other = MARKS[1 - MARKS.index(mark)]
        return {**state, "board": board, "next": None if _winner(board) or all(board) else other}

    def outcome(self, state: Any) -> Outcome | None:
        if state["next"] is not None:
            return None
        mark = _winner(state["board"])
        if mark is None:
            return Outcome("It is a draw.")
        winner = state["players"][MARKS.index(mark)]
        return Outcome(f"{winner} wins with {mark}.", winner)

    def mover(self, state: Any) -> str | None:
        return None if state["next"] is None else str(state["players"][MARKS.index(state["next"])])

    def forfeit(self, state: Any, who: str) -> Outcome:
        other = 1 - state["players"].index(who)
        winner = state["players"][other]
        return Outcome(f"{who} did not move: {winner} wins with {MARKS[other]}.", winner)

    def asked(self, state: Any) -> str:
        return f"You play {state['next']}. Say the number of the cell you take, and no other: {_free(state['board'])}."

    def read(self, text: str) -> Any | None:
        """Return the move for a text with exactly one number, its cell."""
        numbers = set(_NUMBER.findall(text))
        return {"cell": int(numbers.pop())} if len(numbers) == 1 else None

    def drawn(self, state: Any) -> str:
        """Return the board; free cells show their number, for players that use text."""
        shown = [mark or str(number) for number, mark in enumerate(state["board"], 1)]
        rows = [" {} | {} | {}".format(*shown[start : start + 3]) for start in (0, 3, 6)]
        return "\n---+---+---\n".join(rows)

    def _cell(self, move: Any) -> int:
        match move:
            case {"cell": cell, **rest} if not rest:
                return checks.count(cell, "the cell", least=1, most=9)
        raise Invalid(f'a move is {{"cell": 5}}, from 1, top left, to 9, not {checks.shown(move)}')


def _free(board: list[str]) -> str:
    return ", ".join(str(number) for number in range(1, 10) if not board[number - 1])


def _winner(board: list[str]) -> str | None:
    for row in ROWS:
        marks = {board[cell - 1] for cell in row}
        if len(marks) == 1 and "" not in marks:
            return marks.pop()
    return None
