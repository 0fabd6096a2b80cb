"""The shared state of a meeting: a fold over its moves, by the rules of a game."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from roost.core import checks
from roost.errors import Forbidden, RoostError


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it came out, in a sentence; and who won, if anyone did."""

    text: str
    winner: str | None = None


class Game(Protocol):
    """Rules by which moves change a state. A state is what JSON can hold.

    All of it must depend on what is given and on nothing else: every participant folds the moves for itself, and
    they agree because the rules do.
    """

    def initial(self, setting: Any) -> Any:
        """The state before the first move. Raises Invalid if the setting of the call can't be used."""

    def apply(self, state: Any, author: str, move: Any) -> Any:
        """The state after the move. Raises Invalid, with a sentence that says what would be legal, to refuse it."""

    def outcome(self, state: Any) -> Outcome | None:
        """How it came out, or None while it goes on."""

    def mover(self, state: Any) -> str | None:
        """Whose move it is; None: nobody's, or anybody's."""

    def forfeit(self, state: Any, who: str) -> Outcome:
        """How it comes out when whoever is to move does not."""

    def asked(self, state: Any) -> str:
        """What whoever is to move is asked for, in words that `read` understands the answer to."""

    def read(self, text: str) -> Any | None:
        """The move that a text stands for, so that whoever can only speak can play; None: none, or it is not clear."""

    def drawn(self, state: Any) -> str:
        """The state as text, for people and for models."""


Games: TypeAlias = Mapping[str, Game]


def begin(games: Games, name: str, setting: Any) -> Any:
    """The state before the first move; Forbidden if there is no such game, or not with this setting."""
    game = games.get(name)
    if game is None:
        raise Forbidden(f"the game {name!r:.80} is not known: use one of {', '.join(sorted(games)) or 'none'}")
    try:
        return _own(game.initial(_own(setting)))
    except Exception as error:  # Whatever a game raises must stop nobody's view.
        raise _refused(name, error) from error


def play(games: Games, name: str, state: Any, author: str, move: Any) -> tuple[Any, Outcome | None]:
    """The state after the move, and the outcome if that ended the game; Forbidden if the move is refused."""
    game = games[name]
    try:
        after = _own(game.apply(_own(state), author, _own(move)))
        return after, game.outcome(_own(after))
    except Exception as error:  # Whatever a game raises must stop nobody's view.
        raise _refused(name, error) from error


def forfeit(games: Games, name: str, state: Any, who: str) -> Outcome:
    """How it comes out when this one does not move."""
    try:
        return games[name].forfeit(_own(state), who)
    except Exception:  # Whatever a game raises must stop nobody's view.
        return Outcome(f"{who} did not move: nobody wins.")


def _own(value: Any) -> Any:
    """A copy: what a game does to it changes no earlier view."""
    return checks.data(value, "the state of a game")


def _refused(name: str, error: Exception) -> Forbidden:
    if isinstance(error, RoostError):
        return Forbidden(str(error))
    return Forbidden(f"the game {name!r:.80} failed with {type(error).__name__}: this is a fault of the game")
