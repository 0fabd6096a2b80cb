"""`roost events`: tell agents what has happened, and see what was told."""

from __future__ import annotations

import json as json_module
import sys
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from roost.cli.desk import note_waiting, opened, short, show, show_list
from roost.cli.options import Config, Json, Limit, Store, Urgency, group
from roost.cli.tables import ago, duration, moment
from roost.core.addresses import familiar
from roost.core.events import Event

app = group()


def _data(text: str) -> Any:
    try:
        return json_module.loads(sys.stdin.read() if text == "-" else text)
    except (ValueError, RecursionError):
        raise typer.BadParameter("""the data must be JSON, such as '{"n": 1}' or '"a text"'""") from None


def _since(text: str) -> datetime:
    """A time, or how long ago."""
    try:
        return datetime.now(UTC) - timedelta(seconds=duration(text))
    except typer.BadParameter:
        pass
    try:
        return moment(text)
    except typer.BadParameter as error:
        raise typer.BadParameter(f"{error.message}, or how long ago as 30m or 2d") from None


@app.command()
def publish(
    name: Annotated[str, typer.Argument(metavar="EVENT", help="The name of the event, such as alerts.disk.")],
    data: Annotated[
        str | None, typer.Argument(metavar="DATA", help="What to tell with it, as JSON; - reads it.")
    ] = None,
    priority: Urgency = "normal",
    optional: Annotated[bool, typer.Option("--optional", help="If nobody takes it, it is no dead letter.")] = False,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Tell an event to all your agents that subscribed or wait for it.

    \b
    For example:
      roost events publish alerts.disk '{"used": 0.97}' --priority urgent
    """
    told = None if data is None else _data(data)
    with opened(store, config) as (service, user):
        event_id = service.events.publish(user, name, told, priority=priority, optional=optional)
        [event] = [one for one in service.events.history(user, name=name, limit=10) if one.event_id == event_id]
        if event.takers:
            note_waiting(service)
    nobody = "nobody takes it" if optional else "nobody takes it, it is a dead letter"
    taken = {0: nobody, 1: "taken by one agent"}.get(event.takers, f"taken by {event.takers} agents")
    show(event, lambda: [f"{event_id}: {taken}"], as_json=json)


@app.command()
def history(
    name: Annotated[str | None, typer.Option("--name", help="Only events of this name, such as alerts.*.")] = None,
    since: Annotated[
        datetime | None, typer.Option("--since", metavar="TIME", parser=_since, help="From then on: 1h ago, or a time.")
    ] = None,
    json: Json = False,
    limit: Limit = 50,
    store: Store = None,
    config: Config = None,
) -> None:
    """Show what was published, newest first."""
    with opened(store, config) as (service, user):
        listed = service.events.history(user, name=name, since=since, limit=limit)
    headings = ("ID", "EVENT", "WHEN", "BY", "TAKEN", "DATA")
    show_list(listed, headings, lambda one: _row(one, user), "No events.", as_json=json)


def _row(one: Event, user: str) -> tuple[str, ...]:
    by = familiar(one.publisher, user)
    return short(one.event_id), one.name, ago(one.created), by, str(one.takers), _text(one.data)


def _text(data: Any) -> str:
    return "" if data is None else json_module.dumps(data, ensure_ascii=False)
