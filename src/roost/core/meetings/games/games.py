"""Games: rules that fold the moves of a meeting into a shared state."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from roost.core.values import checks
from roost.errors import Forbidden, RoostError


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a game in one sentence, and the winner, if any."""

    text: str
    winner: str | None = None


class Game(Protocol):
    """Rules of a game: how moves change a state. A state, a setting and a move are JSON values.

    All methods must depend on their arguments and on nothing else (no clock, no random numbers, no memory of earlier
    calls): every participant applies the moves for itself, and all agree because the rules do. Each call is given
    copies, which it may change. Subclasses implement the first three methods; the others have defaults.
    """

    @abstractmethod
    def initial(self, setting: Any) -> Any:
        """Return the state before the first move. Raises Invalid if the setting of the call can't be used."""

    @abstractmethod
    def apply(self, state: Any, author: str, move: Any) -> Any:
        """Return the state after the move. Raises Invalid, with a sentence that says what is legal, to refuse it.

        `author` is an address in full, such as `agent:ann/d`.
        """

    @abstractmethod
    def outcome(self, state: Any) -> Outcome | None:
        """Return the outcome, or None while the game is running."""

    def mover(self, state: Any) -> str | None:
        """Return the full address of the next player; None: nobody, or anybody."""
        return None

    def forfeit(self, state: Any, who: str) -> Outcome:
        """Return the outcome if the next player does not move."""
        return _forfeited(who)

    def asked(self, state: Any) -> str:
        """Return the question to the next player, such that `read` understands the answer."""
        return ""

    def read(self, text: str) -> Any | None:
        """Return the move that a text stands for, so that brains that only speak can play; None if unclear."""
        return None

    def drawn(self, state: Any) -> str:
        """Return the state as text, for users and models."""
        return json.dumps(state, indent=2, ensure_ascii=False)


Games: TypeAlias = Mapping[str, Game]


def begin(games: Games, name: str, setting: Any) -> Any:
    """Return the state before the first move. Raises Forbidden for an unknown game or a wrong setting."""
    game = games.get(name)
    if game is None:
        raise Forbidden(f"the game {name!r:.80} is not known: use one of {', '.join(sorted(games)) or 'none'}")
    try:
        return _own(game.initial(_own(setting)))
    except Exception as error:  # An error of a game must not break a view.
        raise _refused(name, error) from error


def play(games: Games, name: str, state: Any, author: str, move: Any) -> tuple[Any, Outcome | None]:
    """Return the state after the move, and the outcome if the game is over. Raises Forbidden if the move is refused."""
    game = games[name]
    try:
        after = _own(game.apply(_own(state), author, _own(move)))
        return after, game.outcome(_own(after))
    except Exception as error:  # An error of a game must not break a view.
        raise _refused(name, error) from error


def forfeit(games: Games, name: str, state: Any, who: str) -> Outcome:
    """Return the outcome if this player does not move."""
    try:
        return games[name].forfeit(_own(state), who)
    except Exception:  # An error of a game must not break a view.
        return _forfeited(who)


def mover(game: Game, state: Any) -> str | None:
    """Return the next player; None also if the game fails."""
    try:
        found = game.mover(_own(state))
    except Exception:  # An error of a game must not break a view.
        return None
    return found if isinstance(found, str) else None


def drawn(game: Game | None, state: Any) -> str:
    return _described(game.drawn, _own(state)) if game is not None else ""


def asked(game: Game | None, state: Any) -> str:
    return _described(game.asked, _own(state)) if game is not None else ""


def read(game: Game, text: str) -> Any | None:
    """Return the move that a text stands for; None also if the game fails at it."""
    try:
        return _own(game.read(text))
    except Exception:  # An error of a game must not break a turn.
        return None


def _described(describe: Callable[[Any], str], state: Any) -> str:
    try:
        return checks.clean(str(describe(state)))
    except Exception as error:  # An error of a game must not break a view.
        return f"(the game failed with {type(error).__name__})"


def _forfeited(who: str) -> Outcome:
    return Outcome(f"{who} did not move: nobody wins.")


def _own(value: Any) -> Any:
    """Return a copy, so that a game cannot change an earlier view."""
    return checks.data(value, "the state of a game")


def _refused(name: str, error: Exception) -> Forbidden:
    if isinstance(error, RoostError):
        return Forbidden(str(error))
    return Forbidden(f"the game {name!r:.80} failed with {type(error).__name__}: this is a fault of the game")
