"""Registry of games, one for the whole process. A meeting names its game in the call.

Views are folded from logs with the rules of the game, and shared between all that hold the same log: two rules under
one name would give two views of one log.
"""

from __future__ import annotations

from roost.core.meetings.games.games import Game, Games
from roost.core.meetings.games.tictactoe import TicTacToe
from roost.core.meetings.log.bodies import Called, EntryId
from roost.core.meetings.log.log import Log
from roost.core.values import checks
from roost.errors import Conflict, Invalid

_KNOWN: dict[str, Game] = {"tic-tac-toe": TicTacToe()}
GAMES: Games = _KNOWN
_METHODS = ("initial", "apply", "outcome", "mover", "forfeit", "asked", "read", "drawn")


def register_game(name: str, game: Game) -> None:
    """Register a game under this name, before a Roost is opened whose meetings play it.

    Raises Invalid if it is not a game, Conflict if another one has this name.
    """
    checks.name(name, "the name of a game")
    missing = [method for method in _METHODS if not callable(getattr(game, method, None))]
    if isinstance(game, type) or missing:
        wanted = f"lacks {', '.join(missing)}" if missing else "is a class: give an instance of it"
        raise Invalid(f"the game {name!r:.80} {wanted}; derive it from roost.Game")
    registered = _KNOWN.get(name)
    if registered is not None and type(registered) is not type(game):
        raise Conflict(
            f"the name {name!r:.80} belongs to another game, {type(registered).__qualname__}: choose another name"
        )
    _KNOWN[name] = game


def unknown_game(log: Log) -> str | None:
    """Return the name of the meeting's game if it is not registered: then the log can't be read."""
    call = log.get(EntryId(log.creator, 1))
    name = call.body.game if call is not None and isinstance(call.body, Called) else None
    return name if name is not None and name not in _KNOWN else None
