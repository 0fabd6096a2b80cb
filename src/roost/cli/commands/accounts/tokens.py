"""`roost tokens`: API tokens, with which programs act for you."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Annotated

import typer

from roost.cli.app.connect import Service
from roost.cli.app.durations import positive_duration
from roost.cli.app.options import Config, Json, Limit, Store, command_group
from roost.cli.app.shared import NEWEST, open_session, single_match
from roost.cli.render.output import print_json, print_result, print_table, short_id, shown
from roost.cli.render.tables import local_time, relative_time
from roost.cli.render.text import sanitize
from roost.core.accounts.tokens import ALL, ApiToken
from roost.errors import NotFound

app = command_group()
One = Annotated[str, typer.Argument(metavar="TOKEN", help="Id of a token, a unique part of it, or its name.")]


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="Name by which you recognise it, such as the program's.")],
    scopes: Annotated[
        list[str] | None,
        typer.Option("--scope", metavar="SCOPE", help="What it may do, such as talks or agents:read; may be repeated."),
    ] = None,
    expires: Annotated[
        float | None,
        typer.Option("--expires", metavar="DURATION", parser=positive_duration, help="Time after which it expires."),
    ] = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Create a token and print it once.

    Without --scope it may do everything that you may do. Programs send it as `Authorization: Bearer TOKEN`.
    """
    with open_session(store, config) as (service, user):
        made = service.tokens.create(user, name, scopes=scopes or [ALL], expires_in=expires)
    if json:
        print_json(shown(made))
        return
    until = f"until {local_time(made.token.expires)}" if made.token.expires else "until it is revoked"
    print(made.secret)
    print(f"It is not shown again, and valid {until}.", file=sys.stderr)  # only the token can be piped


@app.command()
def ls(json: Json = False, limit: Limit = 50, store: Store = None, config: Config = None) -> None:
    """List your tokens without their secrets, oldest first."""
    with open_session(store, config) as (service, user):
        listed = service.tokens.list(user, limit=limit)
    header = ("ID", "NAME", "SCOPES", "CREATED", "EXPIRES")
    print_table(listed, header, _row, "No tokens. `roost tokens create NAME` creates one.", as_json=json)


def _row(one: ApiToken) -> tuple[str, ...]:
    expires = "never" if one.expires is None else local_time(one.expires)
    if one.expires is not None and one.expires < datetime.now(UTC):
        expires = f"expired {relative_time(one.expires)}"
    return short_id(one.token_id), one.name, " ".join(one.scopes), relative_time(one.created), expires


@app.command()
def revoke(token: One, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Revoke a token: programs that use it are refused at once."""
    with open_session(store, config) as (service, user):
        one = _find(service, user, token)
        service.tokens.revoke(user, one.token_id)
    print_result(one, lambda: [f"Revoked {sanitize(one.name)} ({short_id(one.token_id)})."], as_json=json)


def _find(service: Service, user: str, part: str) -> ApiToken:
    listed = service.tokens.list(user, limit=NEWEST)
    named = [one for one in listed if one.name == part]
    matching = named or [one for one in listed if part in one.token_id]
    if not matching:
        raise NotFound(f"there is no token {part!r:.80}: `roost tokens ls` lists them")
    return single_match(matching, part, "tokens", lambda one: f"{one.token_id}  {one.name}", by_name=bool(named))
