"""`roost webhooks`: facts that are posted to URLs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from roost.cli.app.connect import Service
from roost.cli.app.options import Config, Json, Limit, Store, command_group
from roost.cli.app.shared import NEWEST, open_session, single_match
from roost.cli.render.output import print_json, print_result, print_table, short_id
from roost.cli.render.tables import relative_time
from roost.cli.render.text import sanitize
from roost.core.webhooks.webhook import CreatedWebhook, Delivery, Webhook
from roost.errors import NotFound
from roost.protocol.values import shown

app = command_group()
One = Annotated[str, typer.Argument(metavar="WEBHOOK", help="Id of a webhook, a unique part of it, or its name.")]
Events = Annotated[
    list[str] | None,
    typer.Option("--event", metavar="FACT", help="Fact to post, such as TaskDone or Task*; may be repeated."),
]
Name = Annotated[str, typer.Option("--name", help="Name by which you recognise it.")]


@app.command()
def create(
    url: Annotated[str, typer.Argument(help="URL to which facts are posted.")],
    events: Events = None,
    name: Name = "",
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Post facts to a URL.

    The secret that signs the requests is printed once. Without --event all facts are posted.
    """
    with open_session(store, config) as (service, user):
        made = service.webhooks.create(user, url, events=events or ["*"], name=name)
    _print_secret(made, as_json=json)


@app.command()
def ls(json: Json = False, limit: Limit = 50, store: Store = None, config: Config = None) -> None:
    """List your webhooks, oldest first."""
    with open_session(store, config) as (service, user):
        listed = service.webhooks.list(user, limit=limit)
    header = ("ID", "NAME", "EVENTS", "STATE", "LAST SUCCESS", "URL")
    print_table(listed, header, _row, "No webhooks. `roost webhooks create URL` creates one.", as_json=json)


@app.command()
def show(webhook: One, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Show a webhook."""
    _change(webhook, lambda service, user, one: one, _lines, json, store, config)


@app.command()
def pause(webhook: One, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Pause a webhook: facts are kept until it is resumed."""
    _change(webhook, lambda service, user, one: service.webhooks.pause(user, one), _lines, json, store, config)


@app.command()
def resume(webhook: One, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Resume a webhook, and send what is pending."""
    _change(webhook, lambda service, user, one: service.webhooks.resume(user, one), _lines, json, store, config)


@app.command()
def rotate(webhook: One, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Replace the secret of a webhook.

    For a day, requests are signed with the old one too.
    """
    with open_session(store, config) as (service, user):
        made = service.webhooks.rotate(user, find(service, user, webhook).webhook_id)
    _print_secret(made, as_json=json)


@app.command("test")
def ping(webhook: One, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Send one request of the type Ping.

    The exit code is 1 if it fails.
    """
    with open_session(store, config) as (service, user):
        sent = service.webhooks.test(user, find(service, user, webhook).webhook_id)
    told = f"delivered in {sent.seconds or 0:.2f} s" if sent.state == "delivered" else f"failed: {sent.error}"
    print_result(sent, lambda: [sanitize(told)], as_json=json)
    if sent.state != "delivered":
        raise typer.Exit(1)


@app.command()
def delete(webhook: One, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Delete a webhook, with what is pending."""
    with open_session(store, config) as (service, user):
        one = find(service, user, webhook)
        service.webhooks.delete(user, one.webhook_id)
    print_result(one, lambda: [f"Deleted {sanitize(one.name)} ({short_id(one.webhook_id)})."], as_json=json)


@app.command()
def deliveries(webhook: One, json: Json = False, limit: Limit = 50, store: Store = None, config: Config = None) -> None:
    """List deliveries, newest first, each with its last attempt."""
    with open_session(store, config) as (service, user):
        listed = service.webhooks.deliveries(user, find(service, user, webhook).webhook_id, limit=limit)
    header = ("ID", "FACT", "STATE", "ATTEMPTS", "STATUS", "SECONDS", "CREATED", "ERROR")
    print_table(listed, header, _delivery_row, "No deliveries.", as_json=json)


def find(service: Service, user: str, part: str) -> Webhook:
    listed = service.webhooks.list(user, limit=NEWEST)
    named = [one for one in listed if one.name == part]
    matching = named or [one for one in listed if part in one.webhook_id]
    if not matching:
        raise NotFound(f"there is no webhook {part!r:.80}: `roost webhooks ls` lists them")
    return single_match(matching, part, "webhooks", lambda one: f"{one.webhook_id}  {one.name}", by_name=bool(named))


def _change(
    part: str,
    act: Callable[[Service, str, str], Webhook | str],
    lines: Callable[[Webhook], list[str]],
    as_json: bool,
    store: str | None,
    config: Path | None,
) -> None:
    with open_session(store, config) as (service, user):
        one = find(service, user, part)
        act(service, user, one.webhook_id)
        one = service.webhooks.get(user, one.webhook_id)
    print_result(one, lambda: lines(one), as_json=as_json)


def _print_secret(made: CreatedWebhook, *, as_json: bool) -> None:
    if as_json:
        print_json(shown(made))
        return
    print(made.secret)
    told = f"Webhook {short_id(made.webhook.webhook_id)}. Its secret is not shown again: requests are signed with it."
    print(told, file=sys.stderr)  # only the secret can be piped


def _row(one: Webhook) -> tuple[str, ...]:
    success = "never" if one.last_success is None else relative_time(one.last_success)
    state = "paused" if one.paused else "failing" if one.failures else "active"
    return short_id(one.webhook_id), one.name, " ".join(one.events), state, success, one.url


def _lines(one: Webhook) -> list[str]:
    success = "never" if one.last_success is None else relative_time(one.last_success)
    told = [
        f"{one.name} ({short_id(one.webhook_id)})",
        f"URL: {one.url}",
        f"Events: {' '.join(one.events)}",
        f"State: paused, {one.reason}" if one.paused else f"State: active, {one.failures} failures in a row",
        f"Last success: {success}; missed facts: {one.missed:,}",
    ]
    return [sanitize(line) for line in told]


def _delivery_row(one: Delivery) -> tuple[str, ...]:
    status = "" if one.status is None else str(one.status)
    seconds = "" if one.seconds is None else f"{one.seconds:.2f}"
    error = one.error or ""
    created = relative_time(one.created)
    return short_id(one.delivery_id), one.event, one.state, str(one.attempts), status, seconds, created, error
