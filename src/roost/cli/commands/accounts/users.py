"""`roost users`: accounts of the people who sign in, and the audit list."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from roost.cli.app.connect import Service, current_user, open_service, public_url
from roost.cli.app.files import write_new_file
from roost.cli.app.options import Config, Json, Limit, Store, command_group, load_settings
from roost.cli.app.shared import open_session
from roost.cli.app.typer_ext import parse_choice
from roost.cli.render.output import print_json, print_result, print_table
from roost.cli.render.progress import Progress
from roost.cli.render.tables import local_time, relative_time
from roost.cli.render.text import sanitize
from roost.core.accounts.users import Account, AuditEntry, Invitation, Role
from roost.errors import Invalid, NotFound
from roost.protocol.values import shown
from roost.settings import Settings

app = command_group()
STEP = 1.0
"""Seconds between two looks at the progress of a deletion."""
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of an account, which is the id of its user.")]


@app.command()
def add(
    name: Name,
    admin: Annotated[bool, typer.Option("--admin", help="Let the user manage accounts.")] = False,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Add an account, and print a link to set its password.

    The link is valid once, for seven days.
    """
    settings = load_settings(config, store=store)
    with open_service(settings) as service:
        user = current_user(settings)
        made = service.users.add(user, name, role=Role.ADMIN if admin else Role.USER)
        _print_invitation(made, settings, service, as_json=json)
        if not json and len(service.users.list(user, limit=2)) == 1:
            print("This is the first account: everyone has to sign in now. `roost link` signs you in.", file=sys.stderr)


@app.command()
def reset(name: Name, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Remove a password, and print a link to set a new one.

    The user is signed out everywhere. The link is valid once, for a day.
    """
    settings = load_settings(config, store=store)
    with open_service(settings) as service:
        made = service.users.reset(current_user(settings), name)
        _print_invitation(made, settings, service, as_json=json)


def _print_invitation(made: Invitation, settings: Settings, service: Service, *, as_json: bool) -> None:
    link = f"{public_url(settings, service)}/invite?code={made.code}"
    if as_json:
        print_json({**shown(made), "link": link})
        return
    print(link)
    where = "" if link.startswith("http") else " Put the address of your server before it."
    note = f"Send this link to {made.account.user_id}. It is valid once, until {local_time(made.expires)}.{where}"
    print(note, file=sys.stderr)  # only the link can be piped


@app.command()
def ls(json: Json = False, limit: Limit = 200, store: Store = None, config: Config = None) -> None:
    """List the accounts by name."""
    with open_session(store, config) as (service, user):
        listed = service.users.list(user, limit=limit)
    header = ("NAME", "ROLE", "STATE", "ADDED")
    print_table(listed, header, _row, "No accounts. `roost users add NAME` adds one.", as_json=json, whole="NAME")


app.command("list", hidden=True)(ls)


def _row(one: Account) -> tuple[str, ...]:
    return one.user_id, one.role, _state(one), relative_time(one.created)


def _state(one: Account) -> str:
    if one.disabled is not None:
        return "disabled"
    return "has a password" if one.has_password else "has no password"


@app.command()
def show(name: Name, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Show an account."""
    with open_session(store, config) as (service, user):
        _print_account(service.users.get(user, name), as_json=json)


@app.command()
def disable(name: Name, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Disable an account, and sign its user out.

    API tokens of the user are refused until the account is enabled.
    """
    with open_session(store, config) as (service, user):
        _print_account(service.users.disable(user, name), as_json=json)


@app.command()
def enable(name: Name, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Enable a disabled account.

    Its password and its API tokens are valid again.
    """
    with open_session(store, config) as (service, user):
        _print_account(service.users.enable(user, name), as_json=json)


@app.command()
def role(
    name: Name,
    role: Annotated[str, typer.Argument(parser=parse_choice("the role", Role), help="user or admin.")],
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Make an account an admin, or a plain user."""
    with open_session(store, config) as (service, user):
        _print_account(service.users.set_role(user, name, role), as_json=json)


def _print_account(one: Account, *, as_json: bool) -> None:
    line = f"{one.user_id}: {one.role}, {_state(one)}, added {local_time(one.created)}"
    print_result(one, lambda: [line], as_json=as_json)


@app.command()
def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Delete a user with all talks, agents, mail and files.

    This cannot be undone.
    """
    if not yes:
        _confirm(name)
    with open_session(store, config) as (service, user):
        print(f"Deleting everything of {sanitize(name)} …", file=sys.stderr)
        _delete(service, user, name)
    print(f"Deleted {sanitize(name)}.")


def _delete(service: Service, user: str, name: str) -> None:
    """Wait for the end and show the progress. A deletion continues in the server also if this command is stopped."""
    found = service.users.delete(user, name, STEP)
    with Progress("Deleted") as progress, suppress(NotFound):  # it ended between two calls
        while not found.is_over:
            progress.show(f"{found.removed:,} things; now {found.step or 'waiting for others'}")
            found = service.users.delete(user, name, STEP)


def _confirm(name: str) -> None:
    print(f"This deletes everything of {sanitize(name)}, and cannot be undone. Type the name:", file=sys.stderr)
    if sys.stdin.readline().rstrip("\n") != name:
        raise Invalid("the name was not typed: nothing was deleted")


@app.command()
def export(
    name: Name,
    output: Annotated[Path | None, typer.Option("--output", metavar="FILE", help="File to write, instead.")] = None,
    store: Store = None,
    config: Config = None,
) -> None:
    """Print all data of a user as JSON, without secrets."""
    with open_session(store, config) as (service, user):
        parts = _parts(service, user, name)
        if output is None:
            sys.stdout.writelines(parts)
            return
        write_new_file(output, parts)
    print(f"Exported to {output}.", file=sys.stderr)


def _parts(service: Service, user: str, name: str) -> Iterator[str]:
    after: str | None = ""
    while after is not None:
        part = service.users.export(user, name, after=after)
        yield part.text
        after = part.after


@app.command()
def audit(json: Json = False, limit: Limit = 50, store: Store = None, config: Config = None) -> None:
    """Show sign-ins, actions of admins and tokens, newest first."""
    with open_session(store, config) as (service, user):
        listed = service.users.audit(user, limit=limit)
    header = ("TIME", "ACTOR", "ACTION", "TARGET", "ADDRESS", "DETAIL")
    print_table(listed, header, _entry, "Nothing was recorded yet.", as_json=json, whole="TIME")


def _entry(one: AuditEntry) -> tuple[str, ...]:
    return f"{one.time.astimezone():%Y-%m-%d %H:%M:%S}", one.actor, one.action, one.target, one.address, one.detail
