"""Check that a game can be played in meetings: its rules must be pure functions of JSON values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from roost.core.meetings.games.games import Game
from roost.core.values import checks

Moves = Sequence[tuple[str, Any]]


def check_game(game: Game, setting: Any, moves: Moves) -> Any:
    """Play these moves, each an author and a move; return the last state.

    Raise AssertionError if a method is not deterministic, or returns something that JSON cannot hold. Illegal moves
    raise as in a meeting.
    """
    state = _same(game.initial, setting)
    for author, move in moves:
        state = _same(game.apply, state, author, move)
        for method in (game.outcome, game.mover, game.asked, game.drawn):
            _same(method, state)
    return state


def _same(method: Callable[..., Any], *given: Any) -> Any:
    """Call a method twice with copies of the arguments; return the common result."""
    first, again = (method(*(checks.data(value, "what a game is given") for value in given)) for _ in range(2))
    name = getattr(method, "__qualname__", str(method))
    assert first == again, f"{name} gave {first!r:.200}, and for the same {again!r:.200}"
    if method.__name__ in ("initial", "apply"):
        assert checks.data(first, f"what {name} gives") == first, f"{name} gave what JSON can't hold: {first!r:.200}"
    return first
