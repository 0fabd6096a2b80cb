"""`roost login`, `roost logout` and `roost whoami`."""

from __future__ import annotations

from typing import Annotated

import typer

from roost.cli.app.options import Config, Json, Store, command_group, load_settings

app = command_group()
Url = Annotated[str | None, typer.Argument(metavar="URL", help="URL of the server (default: $ROOST_SERVER).")]


@app.command()
def login(url: Url = None, json: Json = False, config: Config = None) -> None:
    """Sign in to a server with an API token.

    Asks for the token, or reads it from a pipe. `roost tokens create NAME` creates one on that server. Commands with
    `--server URL` or ROOST_SERVER then act for the owner of the token.
    """
    from roost.cli.commands.accounts import logins as command

    command.login(load_settings(config, **_server(url)), as_json=json)


@app.command()
def logout(url: Url = None, json: Json = False, config: Config = None) -> None:
    """Forget the token of a server.

    The token stays valid: `roost tokens revoke` revokes it.
    """
    from roost.cli.commands.accounts import logins as command

    command.logout(load_settings(config, **_server(url)), as_json=json)


@app.command()
def whoami(json: Json = False, store: Store = None, config: Config = None) -> None:
    """Show the user and the server that commands use."""
    from roost.cli.commands.accounts import logins as command

    command.whoami(load_settings(config, store=store), as_json=json)


def _server(url: str | None) -> dict[str, str]:
    return {"server": url} if url else {}
