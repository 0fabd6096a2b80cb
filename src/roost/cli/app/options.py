"""Options and arguments that many commands share, and loading of the settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roost.cli.app.server_choice import CHOICE
from roost.cli.app.typer_ext import CommandGroup, parse_choice, parse_count
from roost.core.values.priority import Priority
from roost.errors import Invalid

if TYPE_CHECKING:
    from roost.settings import Settings

Config = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Settings file (default: $ROOST_CONFIG or ./roost.toml)."),
]
Store = Annotated[
    str | None, typer.Option("--store", metavar="URL", help="URL of the store, such as sqlite:///file.db.")
]
Port = Annotated[int | None, typer.Option("--port", parser=parse_count(0, 65535), help="Port to listen on (8501).")]
Host = Annotated[str | None, typer.Option("--host", metavar="ADDRESS", help="Address to listen on (127.0.0.1).")]
TlsCert = Annotated[
    Path | None, typer.Option("--tls-cert", metavar="FILE", help="Serve HTTPS with this certificate (PEM).")
]
TlsKey = Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="Key of the certificate (PEM).")]
BehindProxy = Annotated[bool, typer.Option("--behind-proxy", help="A proxy in front of the server adds TLS.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Limit = Annotated[
    int,
    typer.Option("--limit", metavar="N", parser=parse_count(1, 1000), help="Maximum number of results, up to 1000."),
]
Agent = Annotated[str, typer.Argument(metavar="AGENT", help="Id of an agent.")]
OfAgent = Annotated[str | None, typer.Option("--agent", help="Only of this agent.")]
parse_priority = parse_choice("the priority", Priority)
PriorityOption = Annotated[str, typer.Option("--priority", parser=parse_priority, help="low, normal, high or urgent.")]


def load_settings(config: Path | None, **options: Any) -> Settings:
    """Read the settings. Raise Invalid if a server is chosen for a command that works on this machine."""
    from roost.settings import load

    choice, store = CHOICE.get(), options.get("store")
    if store and choice.server:
        raise typer.BadParameter("--server and --store cannot be combined: a server has its own store")
    settings = load(config, **{"server": choice.server, "ca_file": choice.ca_file} | options)
    if store:  # names this machine
        settings = settings.model_copy(update={"server": None})
    if choice.is_local and settings.server:
        raise Invalid(
            f"this command works on this machine only: run it on the machine of {settings.server}, or here without"
            " --server and ROOST_SERVER"
        )
    return settings


def command_group() -> CommandGroup:
    """Return an empty command group; `main` gives it its name and its help line."""
    return CommandGroup(no_args_is_help=True, rich_markup_mode=None)
