"""Options `--server` and `--ca-file`, which every command has without declaring them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from roost.cli.app.completion import add_completion


@dataclass(frozen=True, slots=True)
class ServerChoice:
    """Server that the command line names. `is_local`: the command works only on this machine."""

    server: str | None = None
    ca_file: Path | None = None
    is_local: bool = False


NONE = ServerChoice()
CHOICE: ContextVar[ServerChoice] = ContextVar("roost_server_choice", default=NONE)
"""Choice of the command that runs."""


_SERVER = {"metavar": "URL", "help": "Use this server in place of a store (default: $ROOST_SERVER)."}
_CA_FILE = {"metavar": "FILE", "help": "Certificates to trust, in PEM format (default: $ROOST_CA_FILE)."}
Server = Annotated[str | None, typer.Option("--server", **_SERVER)]
CaFile = Annotated[Path | None, typer.Option("--ca-file", **_CA_FILE)]
HiddenServer = Annotated[str | None, typer.Option("--server", hidden=True, **_SERVER)]
HiddenCaFile = Annotated[Path | None, typer.Option("--ca-file", hidden=True, **_CA_FILE)]
"""Options of local commands, which refuse them in a sentence."""


def with_server(command: Callable[..., Any], *, is_local: bool) -> Callable[..., Any]:
    """Add the options to a command that has settings; a local command refuses a server."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())
    if not any(one.name == "config" for one in own):
        return command
    add_completion(own)
    added = {"server": HiddenServer, "ca_file": HiddenCaFile} if is_local else {"server": Server, "ca_file": CaFile}
    kind = inspect.Parameter.KEYWORD_ONLY
    more = [inspect.Parameter(name, kind, default=None, annotation=option) for name, option in added.items()]

    @functools.wraps(command)
    def run(server: str | None, ca_file: Path | None, **options: Any) -> Any:
        outer = CHOICE.get()
        chosen = ServerChoice(server or outer.server, ca_file or outer.ca_file, is_local)
        before = CHOICE.set(chosen)
        try:
            return command(**options)
        finally:
            CHOICE.reset(before)

    parameters = [*(one.replace(kind=kind) for one in own), *more]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run
