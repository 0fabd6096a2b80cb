"""Import of tools and games that the settings name as `module:name`."""

from __future__ import annotations

import importlib
from typing import Any

from roost.core.meetings.games.games import Game
from roost.errors import Invalid
from roost.ports import Tool, tool


def imported(name: str) -> Tool:
    """Return the tool of this name, or a tool made from the function; raise Invalid if it cannot be loaded."""
    found = _found(name, "tool")
    made = found if isinstance(found, Tool) else tool(found)
    made.parameters  # noqa: B018 — raises for an invalid tool
    return made


def imported_game(name: str) -> Game:
    """Return the game of this name, or an instance of the class; raise Invalid if it cannot be loaded."""
    found = _found(name, "game")
    try:
        made: Game = found() if isinstance(found, type) else found
    except Exception as error:  # the constructor may raise anything
        raise Invalid(f"cannot create the game {name!r}: {type(error).__name__}: {error}") from error
    return made


def _found(name: str, what: str) -> Any:
    module, _, member = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), member, None)
    except (Exception, SystemExit) as error:  # the import may raise anything
        raise Invalid(f"the {what} {name!r} cannot be loaded: {type(error).__name__}: {error}") from error
    if found is None:
        raise Invalid(f"the {what} {name!r} cannot be loaded: {module!r} has no {member!r}")
    return found
