"""What the commands share: their options, and how they come by their settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roost.cli.commands import Commands, choice, count
from roost.core.priority import Priority

if TYPE_CHECKING:
    from roost.settings import Settings

Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings file (else ROOST_CONFIG, else ./roost.toml).")
]
Store = Annotated[
    str | None, typer.Option("--store", metavar="URL", help="Where things are kept, such as sqlite:///file.db.")
]
Port = Annotated[int | None, typer.Option("--port", parser=count(0, 65535), help="Port to listen on (8501).")]
Host = Annotated[str | None, typer.Option("--host", metavar="ADDRESS", help="Address to listen on (127.0.0.1).")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Limit = Annotated[
    int, typer.Option("--limit", metavar="N", parser=count(1, 1000), help="How many at the most, up to 1000.")
]
Agent = Annotated[str, typer.Argument(metavar="AGENT", help="The id of an agent.")]
OfAgent = Annotated[str | None, typer.Option("--agent", help="Only those of this agent.")]
urgency = choice("the priority", Priority)
Urgency = Annotated[str, typer.Option("--priority", parser=urgency, help="low, normal, high or urgent.")]


def settings_of(config: Path | None, **options: Any) -> Settings:
    from roost.settings import load

    return load(config, **options)


def group() -> typer.Typer:
    """Commands of one noun; `main` names it, and says what it is for."""
    return Commands(no_args_is_help=True, rich_markup_mode=None)
