"""Servers of tools: how one is reached."""

from __future__ import annotations

from dataclasses import dataclass

from roost.ports.tools import LIMIT, OUTPUT


@dataclass(frozen=True)
class ServerConfig:
    """How a server is reached: by a command or by a URL."""

    name: str
    command: tuple[str, ...] = ()
    url: str | None = None
    folder: str | None = None
    environment: tuple[str, ...] = ()
    """The names of variables that the command is given, beside the few that every program needs."""
    token: str | None = None
    """The name of the variable that holds the token for the URL."""
    limit: float = LIMIT
    output: int = OUTPUT
    approval: tuple[str, ...] = ()
    """Of which tools a person is asked: names or patterns."""
