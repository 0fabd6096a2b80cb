"""`roost schedules`: tasks sent to agents at set times."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from roost.cli.app.connect import Service
from roost.cli.app.durations import duration, future_time, positive_duration
from roost.cli.app.options import (
    Agent,
    Config,
    Json,
    Limit,
    OfAgent,
    PriorityOption,
    Store,
    command_group,
    parse_priority,
)
from roost.cli.app.shared import NEWEST, check_agent, find_by_id, note_if_inactive, note_not_running, open_session
from roost.cli.app.typer_ext import parse_choice, parse_with
from roost.cli.render.output import print_result, print_table, short_id
from roost.cli.render.tables import format_duration, key_values, local_time, relative_time
from roost.cli.render.text import sanitize, single_line
from roost.core.schedules import rules
from roost.core.schedules.rules import MissedPolicy, Overlap, described
from roost.core.schedules.schedule import Schedule as AgentSchedule

app = command_group()
Schedule = Annotated[str, typer.Argument(metavar="SCHEDULE", help="Name or id of a schedule, or a unique part of it.")]


def _cron(text: str) -> str:
    rules.parse(cron=text, now=datetime.now(UTC).timestamp())
    return text


def _zone(text: str) -> str:
    rules.parse(cron="0 0 * * *", zone=text, now=datetime.now(UTC).timestamp())
    return text


Cron = Annotated[
    str | None,
    typer.Option(
        "--cron", parser=parse_with(_cron), help='Cron rule (minute, hour, day, month, weekday): "0 9 * * 1-5".'
    ),
]
Every = Annotated[
    float | None, typer.Option("--every", metavar="DURATION", parser=positive_duration, help="Interval: 15m, 1h, 1d.")
]
At = Annotated[
    datetime | None,
    typer.Option("--at", metavar="TIME", parser=future_time, help="Once, at this time: 2030-01-01T09:00Z."),
]
Zone = typer.Option("--zone", parser=parse_with(_zone), help="Time zone of --cron, such as Europe/Berlin (UTC).")
Overlapping = typer.Option(
    "--overlap",
    parser=parse_choice("the overlap policy", Overlap),
    help="If the last task still runs: skip, queue_one, queue_all or replace.",
)
Missing = typer.Option(
    "--missed",
    parser=parse_choice("`missed`", MissedPolicy),
    help="Ticks missed while Roost was down: skip, once or all (see --catch-up).",
)
CatchUp = Annotated[
    float | None,
    typer.Option("--catch-up", metavar="DURATION", parser=duration, help="How far back missed ticks are run (1d)."),
]


@app.command()
def add(
    agent: Agent,
    prompt: Annotated[str, typer.Argument(metavar="TASK", help="Prompt of the task.")],
    cron: Cron = None,
    every: Every = None,
    at_time: At = None,
    zone: Annotated[str | None, Zone] = None,
    name: Annotated[str | None, typer.Option("--name", help="Name of the schedule.")] = None,
    priority: PriorityOption = "normal",
    overlap: Annotated[str, Overlapping] = "skip",
    missed: Annotated[str, Missing] = "once",
    catch_up: CatchUp = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Send a task to an agent at set times.

    \b
    For example:
      roost schedules add d "Check system health" --cron "*/15 * * * *" --zone Europe/Berlin
    """
    if sum(rule is not None for rule in (cron, every, at_time)) != 1:
        raise typer.BadParameter("use exactly one of --cron, --every and --at")
    _check_zone(zone, every, at_time)
    window = {} if catch_up is None else {"catch_up": catch_up}
    with open_session(store, config) as (service, user):
        made = service.schedules.create(
            user,
            agent,
            prompt,
            cron=cron,
            every=every,
            at=at_time,
            zone=zone,
            name=name,
            priority=priority,
            overlap=overlap,
            missed=missed,
            **window,
        )
        note_not_running(service, "the schedule starts when `roost up` runs")
        note_if_inactive(service, user, agent)
    print_result(made, lambda: [_summary(made)], as_json=json)


def _check_zone(zone: str | None, every: float | None, at_time: datetime | None) -> None:
    if zone is not None and (every is not None or at_time is not None):
        raise typer.BadParameter("--zone applies only to --cron: add --cron or remove --zone")


def _summary(schedule: AgentSchedule) -> str:
    comes = (
        f"next {local_time(schedule.next)}" if schedule.next else "paused" if schedule.paused else "no further ticks"
    )
    return single_line(f"{_name(schedule)}: {described(schedule.rule)}, {comes}")


def _name(schedule: AgentSchedule) -> str:
    return short_id(schedule.schedule_id) if schedule.name == schedule.schedule_id else schedule.name


@app.command()
def ls(
    agent: OfAgent = None, json: Json = False, limit: Limit = 200, store: Store = None, config: Config = None
) -> None:
    """List schedules, next to run first."""
    with open_session(store, config) as (service, user):
        listed = service.schedules.list(user, agent=agent, limit=limit)
        check_agent(service, user, agent, listed)
    listed.sort(key=lambda one: (one.next is None or one.paused, one.next or one.created))
    nothing = "No schedules. Add one with `roost schedules add AGENT TASK --every 1h`."
    print_table(listed, ("NAME", "AGENT", "RULE", "NEXT RUN", "TASK"), _row, nothing, as_json=json)


def _row(one: AgentSchedule) -> tuple[str, ...]:
    return _name(one), one.agent_id, described(one.rule), _next(one), one.prompt


def _next(schedule: AgentSchedule) -> str:
    return "paused" if schedule.paused else relative_time(schedule.next) or "never"


@app.command("show")
def show_one(schedule: Schedule, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Show a schedule and its next times."""
    with open_session(store, config) as (service, user):
        one = _find(service, user, schedule)
        times = service.schedules.next_times(user, one.schedule_id)
    print_result(one, lambda: _facts(one, times), as_json=json)


def _find(service: Service, user: str, part: str) -> AgentSchedule:
    return find_by_id(
        part,
        "schedules",
        lambda name: service.schedules.get(user, name),
        lambda: _named(service.schedules.list(user, limit=NEWEST), part),
        lambda one: f"{one.name} {one.schedule_id}",
    )


def _named(listed: list[AgentSchedule], name: str) -> list[AgentSchedule]:
    """Return the schedules with exactly this name, or all if there are none."""
    return [one for one in listed if one.name == name] or listed


def _listed(times: list[datetime]) -> Iterator[tuple[str, str]]:
    """Yield the next times, one per line, with seconds if any of them has some."""
    shape = "%Y-%m-%d %H:%M:%S" if any(time.second for time in times) else "%Y-%m-%d %H:%M"
    for number, time in enumerate(times):
        yield "" if number else "next run", f"{time.astimezone():{shape}}"


def _facts(one: AgentSchedule, times: list[datetime]) -> Iterator[str]:
    yield from key_values(
        [
            ("schedule", one.schedule_id),
            ("name", one.name if one.name != one.schedule_id else ""),
            ("agent", one.agent_id),
            ("rule", described(one.rule) + (", paused" if one.paused else "")),
            *_listed(times),
            ("priority", one.priority),
            ("overlap", one.overlap),
            (
                "missed",
                f"{one.missed}, within the last {format_duration(one.catch_up)}" if one.missed == "all" else one.missed,
            ),
            ("created", local_time(one.created)),
        ]
    )
    yield f"\n{sanitize(one.prompt)}"


@app.command()
def change(
    schedule: Schedule,
    prompt: Annotated[str | None, typer.Option("--task", help="Prompt of the task.")] = None,
    cron: Cron = None,
    every: Every = None,
    at_time: At = None,
    zone: Annotated[str | None, Zone] = None,
    priority: Annotated[
        str | None, typer.Option("--priority", parser=parse_priority, help="low, normal, high or urgent.")
    ] = None,
    overlap: Annotated[str | None, Overlapping] = None,
    missed: Annotated[str | None, Missing] = None,
    catch_up: CatchUp = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Change the times or the task of a schedule.

    Options that are not given stay unchanged. A new interval counts from now.

    \b
    For example:
      roost schedules change health --cron "0 * * * *" --overlap replace
    """
    if sum(rule is not None for rule in (cron, every, at_time)) > 1:
        raise typer.BadParameter("--cron, --every and --at cannot be combined")
    _check_zone(zone, every, at_time)
    named = {
        "prompt": prompt,
        "cron": cron,
        "every": every,
        "at": at_time,
        "zone": zone,
        "priority": priority,
        "overlap": overlap,
        "missed": missed,
        "catch_up": catch_up,
    }
    values: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    if not values:
        raise typer.BadParameter("nothing to change: `roost schedules change --help` lists the options")
    with open_session(store, config) as (service, user):
        one = service.schedules.change(user, _find(service, user, schedule).schedule_id, **values)
        times = service.schedules.next_times(user, one.schedule_id)
    print_result(one, lambda: _facts(one, times), as_json=json)


@app.command()
def pause(schedule: Schedule, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Pause a schedule."""
    with open_session(store, config) as (service, user):
        one = service.schedules.pause(user, _find(service, user, schedule).schedule_id)
    print_result(one, lambda: [_summary(one)], as_json=json)


@app.command()
def resume(schedule: Schedule, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Resume a paused schedule."""
    with open_session(store, config) as (service, user):
        one = service.schedules.resume(user, _find(service, user, schedule).schedule_id)
    print_result(one, lambda: [_summary(one)], as_json=json)


@app.command()
def rm(schedule: Schedule, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Delete a schedule; tasks it has already sent are kept."""
    with open_session(store, config) as (service, user):
        one = _find(service, user, schedule)
        service.schedules.delete(user, one.schedule_id)
    print_result(one, lambda: [single_line(f"{_name(one)} was deleted.")], as_json=json)
