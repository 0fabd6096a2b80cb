"""`roost schedules`: what agents do by the clock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from roost.cli.commands import checked, choice
from roost.cli.desk import NEWEST, check_agent, found, note_rest_of, note_waiting, opened, short, show, show_list
from roost.cli.find import Service
from roost.cli.options import Agent, Config, Json, Limit, OfAgent, Store, Urgency, group, urgency
from roost.cli.tables import ago, at, duration, facts, lasting, some_time, to_come
from roost.cli.text import line, plain
from roost.core import schedules
from roost.core.schedules import Missed, Overlap, described

app = group()
Schedule = Annotated[
    str, typer.Argument(metavar="SCHEDULE", help="The name of a schedule, its id, or any part of it that no other has.")
]


def _cron(text: str) -> str:
    schedules.parse(cron=text, now=datetime.now(UTC).timestamp())
    return text


def _zone(text: str) -> str:
    schedules.parse(cron="0 0 * * *", zone=text, now=datetime.now(UTC).timestamp())
    return text


Cron = Annotated[
    str | None, typer.Option("--cron", parser=checked(_cron), help='Minute, hour, day, month, weekday: "0 9 * * 1-5".')
]
Every = Annotated[
    float | None, typer.Option("--every", metavar="DURATION", parser=some_time, help="So often: 15m, 1h, 1d.")
]
At = Annotated[datetime | None, typer.Option("--at", metavar="TIME", parser=to_come, help="Once: 2030-01-01T09:00Z.")]
Zone = typer.Option("--zone", parser=checked(_zone), help="The time zone of --cron, such as Europe/Berlin (UTC).")
Overlapping = typer.Option(
    "--overlap",
    parser=choice("the overlap policy", Overlap),
    help="While one is not done yet: skip, queue_one, queue_all or replace.",
)
Missing = typer.Option(
    "--missed",
    parser=choice("`missed`", Missed),
    help="What came while nothing ran: skip, once or all (see --catch-up).",
)
CatchUp = Annotated[
    float | None, typer.Option("--catch-up", metavar="DURATION", parser=duration, help="How far back (1d).")
]


@app.command()
def add(
    agent: Agent,
    prompt: Annotated[str, typer.Argument(metavar="TASK", help="What it shall do each time.")],
    cron: Cron = None,
    every: Every = None,
    at_time: At = None,
    zone: Annotated[str | None, Zone] = None,
    name: Annotated[str | None, typer.Option("--name", help="What to call it.")] = None,
    priority: Urgency = "normal",
    overlap: Annotated[str, Overlapping] = "skip",
    missed: Annotated[str, Missing] = "once",
    catch_up: CatchUp = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Have an agent do something by the clock.

    \b
    For example:
      roost schedules add d "Check system health" --cron "*/15 * * * *" --zone Europe/Berlin
    """
    if sum(rule is not None for rule in (cron, every, at_time)) != 1:
        raise typer.BadParameter("say when: give one of --cron, --every and --at")
    _check_zone(zone, every, at_time)
    window = {} if catch_up is None else {"catch_up": catch_up}
    with opened(store, config) as (service, user):
        made = service.schedules.create(
            user, agent, prompt, cron=cron, every=every, at=at_time, zone=zone, name=name, priority=priority,
            overlap=overlap, missed=missed, **window,
        )  # fmt: skip
        note_waiting(service, "it does this when `roost up` runs")
        note_rest_of(service, user, agent)
    show(made, lambda: [_told(made)], as_json=json)


def _check_zone(zone: str | None, every: float | None, at_time: datetime | None) -> None:
    if zone is not None and (every is not None or at_time is not None):
        raise typer.BadParameter("--zone is the time zone of --cron: give --cron, or leave --zone out")


def _told(schedule: schedules.Schedule) -> str:
    comes = f"next {at(schedule.next)}" if schedule.next else "paused" if schedule.paused else "never comes again"
    return line(f"{_name(schedule)}: {described(schedule.rule)}, {comes}")


def _name(schedule: schedules.Schedule) -> str:
    return short(schedule.schedule_id) if schedule.name == schedule.schedule_id else schedule.name


@app.command()
def ls(
    agent: OfAgent = None, json: Json = False, limit: Limit = 200, store: Store = None, config: Config = None
) -> None:
    """List schedules, what comes next first."""
    with opened(store, config) as (service, user):
        listed = service.schedules.list(user, agent=agent, limit=limit)
        check_agent(service, user, agent, listed)
    listed.sort(key=lambda one: (one.next is None or one.paused, one.next or one.created))
    nothing = "No schedules: make one with `roost schedules add AGENT TASK --every 1h`."
    show_list(listed, ("NAME", "AGENT", "WHEN", "NEXT", "TASK"), _row, nothing, as_json=json)


def _row(one: schedules.Schedule) -> tuple[str, ...]:
    return _name(one), one.agent_id, described(one.rule), _next(one), one.prompt


def _next(schedule: schedules.Schedule) -> str:
    return "paused" if schedule.paused else ago(schedule.next) or "never"


@app.command("show")
def show_one(schedule: Schedule, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Show a schedule, and when it comes next."""
    with opened(store, config) as (service, user):
        one = _found(service, user, schedule)
        times = service.schedules.next_times(user, one.schedule_id)
    show(one, lambda: _facts(one, times), as_json=json)


def _found(service: Service, user: str, part: str) -> schedules.Schedule:
    return found(
        part, "schedules", lambda name: service.schedules.get(user, name),
        lambda: _named(service.schedules.list(user, limit=NEWEST), part), lambda one: f"{one.name} {one.schedule_id}",
    )  # fmt: skip


def _named(listed: list[schedules.Schedule], name: str) -> list[schedules.Schedule]:
    """Those of that very name, if there are such."""
    return [one for one in listed if one.name == name] or listed


def _listed(times: list[datetime]) -> Iterator[tuple[str, str]]:
    """Under each other; to the second where they would look the same without."""
    shape = "%Y-%m-%d %H:%M:%S" if any(time.second for time in times) else "%Y-%m-%d %H:%M"
    for number, time in enumerate(times):
        yield "" if number else "next", f"{time.astimezone():{shape}}"


def _facts(one: schedules.Schedule, times: list[datetime]) -> Iterator[str]:
    yield from facts(
        [
            ("schedule", one.schedule_id),
            ("name", one.name if one.name != one.schedule_id else ""),
            ("agent", one.agent_id),
            ("when", described(one.rule) + (", paused" if one.paused else "")),
            *_listed(times),
            ("priority", one.priority),
            ("overlap", one.overlap),
            ("missed", f"{one.missed}, of the last {lasting(one.catch_up)}" if one.missed == "all" else one.missed),
            ("made", at(one.created)),
        ]
    )
    yield f"\n{plain(one.prompt)}"


@app.command()
def change(
    schedule: Schedule,
    prompt: Annotated[str | None, typer.Option("--task", help="What its agent shall do each time.")] = None,
    cron: Cron = None,
    every: Every = None,
    at_time: At = None,
    zone: Annotated[str | None, Zone] = None,
    priority: Annotated[
        str | None, typer.Option("--priority", parser=urgency, help="low, normal, high or urgent.")
    ] = None,
    overlap: Annotated[str | None, Overlapping] = None,
    missed: Annotated[str | None, Missing] = None,
    catch_up: CatchUp = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Change when a schedule comes, and what it does.

    What is not named stays as it is. A new time counts from now.

    \b
    For example:
      roost schedules change health --cron "0 * * * *" --overlap replace
    """
    if sum(rule is not None for rule in (cron, every, at_time)) > 1:
        raise typer.BadParameter("give one of --cron, --every and --at, not more")
    _check_zone(zone, every, at_time)
    named = {
        "prompt": prompt, "cron": cron, "every": every, "at": at_time, "zone": zone, "priority": priority,
        "overlap": overlap, "missed": missed, "catch_up": catch_up,
    }  # fmt: skip
    values: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    if not values:
        raise typer.BadParameter("name what to change: `roost schedules change --help` tells all")
    with opened(store, config) as (service, user):
        one = service.schedules.change(user, _found(service, user, schedule).schedule_id, **values)
        times = service.schedules.next_times(user, one.schedule_id)
    show(one, lambda: _facts(one, times), as_json=json)


@app.command()
def pause(schedule: Schedule, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Have a schedule not come until it is resumed."""
    with opened(store, config) as (service, user):
        one = service.schedules.pause(user, _found(service, user, schedule).schedule_id)
    show(one, lambda: [_told(one)], as_json=json)


@app.command()
def resume(schedule: Schedule, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Let a paused schedule come again."""
    with opened(store, config) as (service, user):
        one = service.schedules.resume(user, _found(service, user, schedule).schedule_id)
    show(one, lambda: [_told(one)], as_json=json)


@app.command()
def rm(schedule: Schedule, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Remove a schedule; what it has given to its agent stays."""
    with opened(store, config) as (service, user):
        one = _found(service, user, schedule)
        service.schedules.delete(user, one.schedule_id)
    show(one, lambda: [line(f"{_name(one)} is removed.")], as_json=json)
