"""Configuration of tool servers."""

from __future__ import annotations

from dataclasses import dataclass

from roost.ports.tools import LIMIT, OUTPUT


@dataclass(frozen=True)
class ServerConfig:
    """Configuration of a tool server: a command or a URL."""

    name: str
    command: tuple[str, ...] = ()
    url: str | None = None
    folder: str | None = None
    environment: tuple[str, ...] = ()
    """Names of environment variables to pass to the command, beside the standard ones."""
    token: str | None = None
    """Name of the variable that holds the token for the URL."""
    limit: float = LIMIT
    output: int = OUTPUT
    approval: tuple[str, ...] = ()
    """Tools that need an approval: names or patterns."""
