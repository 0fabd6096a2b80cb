"""`roost hooks`: URLs to which other programs post."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from roost.cli.app.connect import Service, current_user, open_service, public_url
from roost.cli.app.options import Config, Json, Limit, Store, command_group, load_settings
from roost.cli.app.shared import NEWEST, open_session, single_match
from roost.cli.render.output import print_json, print_result, print_table, short_id
from roost.cli.render.tables import relative_time
from roost.cli.render.text import sanitize
from roost.core.webhooks.hook import Hook
from roost.errors import NotFound
from roost.protocol.values import shown

app = command_group()
One = Annotated[str, typer.Argument(metavar="HOOK", help="Id of a hook, a unique part of it, or its name.")]


@app.command()
def create(
    event: Annotated[str | None, typer.Option("--event", help="Event that a request publishes.")] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Agent that gets a task.")] = None,
    task: Annotated[
        str | None, typer.Option("--task", help="Task for the agent; {body} stands for the body of the request.")
    ] = None,
    headers: Annotated[
        list[str] | None,
        typer.Option("--header", metavar="NAME", help="Header that the event has; may be repeated."),
    ] = None,
    unsigned: Annotated[bool, typer.Option("--unsigned", help="Accept requests without a signature.")] = False,
    name: Annotated[str, typer.Option("--name", help="Name by which you recognise it.")] = "",
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Create a URL to which other programs post.

    A request publishes an event (--event) or gives an agent a task (--agent). URL and secret are printed once.
    """
    settings = load_settings(config, store=store)
    with open_service(settings) as service:
        user, secret = current_user(settings), not unsigned
        made = service.hooks.create(
            user, event=event, agent=agent, task=task, name=name, secret=secret, headers=headers or []
        )
        url = f"{public_url(settings, service)}{made.path}"
    if json:
        print_json({**shown(made), "url": url})
        return
    _print_once(url, made.secret)


def _print_once(url: str, secret: str | None) -> None:
    print(url)
    if secret is not None:
        print(secret)
    shown_once = "The URL is" if secret is None else "The URL, and the secret that signs requests, are"
    where = "" if url.startswith("http") else " Put the address of your server before it."
    print(f"{shown_once} not shown again.{where}", file=sys.stderr)


@app.command()
def ls(json: Json = False, limit: Limit = 50, store: Store = None, config: Config = None) -> None:
    """List your hooks, oldest first."""
    with open_session(store, config) as (service, user):
        listed = service.hooks.list(user, limit=limit)
    header = ("ID", "NAME", "DOES", "SIGNED", "CREATED")
    print_table(listed, header, _row, "No hooks. `roost hooks create --event NAME` creates one.", as_json=json)


@app.command()
def delete(hook: One, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Delete a hook: requests to its URL are refused."""
    with open_session(store, config) as (service, user):
        one = _find(service, user, hook)
        service.hooks.delete(user, one.hook_id)
    print_result(one, lambda: [f"Deleted {sanitize(one.name)} ({short_id(one.hook_id)})."], as_json=json)


def _row(one: Hook) -> tuple[str, ...]:
    does = f"publishes {one.event}" if one.event is not None else f"gives a task to {one.agent}"
    return short_id(one.hook_id), one.name, does, "yes" if one.is_signed else "no", relative_time(one.created)


def _find(service: Service, user: str, part: str) -> Hook:
    listed = service.hooks.list(user, limit=NEWEST)
    named = [one for one in listed if one.name == part]
    matching = named or [one for one in listed if part in one.hook_id]
    if not matching:
        raise NotFound(f"there is no hook {part!r:.80}: `roost hooks ls` lists them")
    return single_match(matching, part, "hooks", lambda one: f"{one.hook_id}  {one.name}", by_name=bool(named))
