"""`roost login`, `roost logout` and `roost whoami`: the user of commands on another server."""

from __future__ import annotations

import getpass
import sys
from urllib.parse import urlsplit

from roost.api.auth import local_user
from roost.cli.app.connect import announced_server, current_user
from roost.cli.app.logins import logins
from roost.cli.render.output import print_json
from roost.cli.render.text import single_line
from roost.client import connect
from roost.errors import Forbidden, Invalid, NotFound
from roost.settings import Settings

LONGEST = 1_000
"""Characters of a token; a file that was piped by mistake is longer."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def login(settings: Settings, *, as_json: bool) -> None:
    """Verify a token and keep it. Nothing is changed if it is not valid."""
    server = _chosen(settings, "roost login https://roost.example.org")
    token = _read_token(server)
    with connect(server, token, ca_file=settings.ca_file) as service:
        try:
            me = service.me()
        except Forbidden as error:
            raise Forbidden(f"{server} refused this token: {error}") from None
    logins(settings).put(server, token)
    if as_json:
        return print_json({"server": server, "userId": me.user_id, "scopes": list(me.scopes)})
    print(f"Signed in to {server} as {single_line(me.user_id)}.")
    print(f"Use it with `roost --server {server} COMMAND`, or set ROOST_SERVER={server}", file=sys.stderr)
    return None


def _read_token(server: str) -> str:
    """Ask for the token without showing it, or read it from a pipe."""
    _warn_of_plain_text(server)
    try:
        given = getpass.getpass(f"API token for {server}: ") if sys.stdin.isatty() else sys.stdin.read(LONGEST)
    except EOFError:
        given = ""
    token = given.strip()
    if not token:
        raise Invalid("no token was given: `roost tokens create NAME`, run on the server, prints one")
    return token


def _warn_of_plain_text(server: str) -> None:
    parts = urlsplit(server)
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        print(
            "roost: http:// is not encrypted: others on the network can read the token; use https://", file=sys.stderr
        )


def logout(settings: Settings, *, as_json: bool) -> None:
    server, known = _chosen(settings, "roost logout https://roost.example.org"), logins(settings)
    if not known.remove(server):
        others = known.servers()
        raise NotFound(f"you are not signed in to {server}" + (f"; but to {', '.join(others)}" if others else ""))
    if as_json:
        return print_json({"server": server})
    print(f"Signed out from {server}. The token is still valid: `roost tokens revoke` on the server revokes it.")
    return None


def _chosen(settings: Settings, example: str) -> str:
    if settings.server is None:
        known = logins(settings).servers()
        raise Invalid(f"name a server: {example}" + (f" (signed in to {', '.join(known)})" if known else ""))
    return settings.server


def whoami(settings: Settings, *, as_json: bool) -> None:
    found = announced_server(settings)
    if settings.server is None or found is None:
        user, server, scopes = local_user(settings.user), None, ["*"]
    else:
        current_user(settings)  # its errors say how to sign in
        with found.connect() as service:
            me = service.me()
        user, server, scopes = me.user_id, settings.server, list(me.scopes)
    if as_json:
        return print_json({"userId": user, "server": server, "scopes": scopes})
    allowed = "" if "*" in scopes else f", with a token for {single_line(' '.join(scopes))}"
    print(f"{single_line(user)} at {server}{allowed}" if server else f"{single_line(user)} on this machine")
    return None
