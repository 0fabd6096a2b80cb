"""`roost events`: publish events and list past ones."""

from __future__ import annotations

import json as json_module
import sys
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from roost.cli.app.durations import duration, timestamp
from roost.cli.app.options import Config, Json, Limit, PriorityOption, Store, command_group
from roost.cli.app.shared import note_not_running, open_session
from roost.cli.render.output import print_result, print_table, short_id
from roost.cli.render.tables import relative_time
from roost.core.envelopes.events import Event
from roost.core.values.addresses import shortened

app = command_group()


def _data(text: str) -> Any:
    try:
        return json_module.loads(sys.stdin.read() if text == "-" else text)
    except (ValueError, RecursionError):
        raise typer.BadParameter("""the data must be JSON, such as '{"n": 1}' or '"a text"'""") from None


def _since(text: str) -> datetime:
    """Parse a time, or a duration before now."""
    try:
        return datetime.now(UTC) - timedelta(seconds=duration(text))
    except typer.BadParameter:
        pass
    try:
        return timestamp(text)
    except typer.BadParameter as error:
        raise typer.BadParameter(f"{error.message}, or a duration such as 30m or 2d") from None


@app.command()
def publish(
    name: Annotated[str, typer.Argument(metavar="EVENT", help="Name of the event, such as alerts.disk.")],
    data: Annotated[
        str | None, typer.Argument(metavar="DATA", help="Data of the event as JSON; - reads standard input.")
    ] = None,
    priority: PriorityOption = "normal",
    optional: Annotated[bool, typer.Option("--optional", help="No dead letter if there is no subscriber.")] = False,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Publish an event to your agents that subscribe to it.

    Agents that sleep until this event receive it as well.

    \b
    For example:
      roost events publish alerts.disk '{"used": 0.97}' --priority urgent
    """
    payload = None if data is None else _data(data)
    with open_session(store, config) as (service, user):
        event_id = service.events.publish(user, name, payload, priority=priority, optional=optional)
        [event] = [one for one in service.events.history(user, name=name, limit=10) if one.event_id == event_id]
        if event.takers:
            note_not_running(service)
    nobody = "no subscriber" if optional else "no subscriber; moved to dead letters"
    taken = {0: nobody, 1: "delivered to one agent"}.get(event.takers, f"delivered to {event.takers} agents")
    print_result(event, lambda: [f"{event_id}: {taken}"], as_json=json)


@app.command()
def history(
    name: Annotated[str | None, typer.Option("--name", help="Only events with this name, such as alerts.*.")] = None,
    since: Annotated[
        datetime | None,
        typer.Option("--since", metavar="TIME", parser=_since, help="Only since this time, or this long ago: 1h."),
    ] = None,
    json: Json = False,
    limit: Limit = 50,
    store: Store = None,
    config: Config = None,
) -> None:
    """List published events, newest first."""
    with open_session(store, config) as (service, user):
        listed = service.events.history(user, name=name, since=since, limit=limit)
    headings = ("ID", "EVENT", "PUBLISHED", "BY", "SUBSCRIBERS", "DATA")
    print_table(listed, headings, lambda one: _row(one, user), "No events.", as_json=json)


def _row(one: Event, user: str) -> tuple[str, ...]:
    by = shortened(one.publisher, user)
    return short_id(one.event_id), one.name, relative_time(one.created), by, str(one.takers), _text(one.data)


def _text(data: Any) -> str:
    return "" if data is None else json_module.dumps(data, ensure_ascii=False)
