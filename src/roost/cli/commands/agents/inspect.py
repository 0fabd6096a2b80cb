"""`roost agents ls`, `show`, `history` and `watch`: commands that only read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Annotated

import typer

from roost.cli.app.agent_options import InState
from roost.cli.app.connect import is_local
from roost.cli.app.durations import positive_duration
from roost.cli.app.options import Agent, Config, Json, Limit, Store, command_group
from roost.cli.app.shared import NEWEST, missing_profile, note_not_running, open_session
from roost.cli.render.agents import agent_table, setting_text, state_text, wake_text
from roost.cli.render.output import print_result, print_table, short_id, shown
from roost.cli.render.tables import key_values, local_time
from roost.cli.render.text import single_line
from roost.core.agents.agent import AgentChange
from roost.core.journal.approvals import Approval
from roost.core.monitoring.health import AgentHealth, Inspection

app = command_group()


@app.command()
def ls(
    state: InState = None,
    json: Json = False,
    limit: Limit = 200,
    store: Store = None,
    config: Config = None,
) -> None:
    """List your agents, by name."""
    with open_session(store, config) as (service, user):
        listed = service.agents.list(user, limit=limit, state=state)
    print_result(listed, lambda: agent_table(listed), as_json=json)


@app.command("show")
def show_one(agent: Agent, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Show an agent and its settings."""
    with open_session(store, config) as (service, user):
        seen = service.agents.inspect(user, agent)
        asked = [one for one in service.approvals.list(user, limit=NEWEST) if one.agent_id == seen.agent.agent_id]
    print_result(
        shown(seen.agent) | {"memories": seen.memories, "health": seen.health},
        lambda: (*_questions(asked), *_facts(seen)),
        as_json=json,
    )


def _questions(asked: list[Approval]) -> Iterator[str]:
    for one in reversed(asked):
        yield one.question()
        if one.is_folded:
            yield f"  Show all arguments: roost approvals show {short_id(one.approval_id)}"
        yield f"  roost approvals approve|decline {short_id(one.approval_id)}"
        yield ""


def _facts(seen: Inspection) -> Iterator[str]:
    agent, remembered, health = seen.agent, seen.memories, seen.health
    if health is AgentHealth.PROFILE_MISSING:
        yield single_line(f"{missing_profile(agent)}: its work waits until `roost up` runs where it is configured,")
        yield single_line(f"or until you change it: roost agents set {agent.agent_id} --profile NAME")
        yield ""
    yield from key_values(
        [
            ("agent", agent.agent_id),
            ("state", state_text(agent)),
            ("health", health),
            ("inbox", f"{agent.queue_depth} waiting"),
            ("working on", ", ".join(agent.current_tasks)),
            ("sleeps until", wake_text(agent, local_time)),
            ("last woken by", agent.wake_reason),
            ("failures", str(agent.error_count or "")),
            ("meetings", ", ".join(f"{one.topic} ({one.phase}, {one.status})" for one in seen.meetings)),
            ("memories", f"{remembered:,}" if remembered else ""),
            ("last active", local_time(agent.last_active)),
            ("created", local_time(agent.created)),
        ]
    )
    yield ""
    yield from key_values((field.name, setting_text(agent.config, field.name)) for field in fields(agent.config))


@app.command()
def history(agent: Agent, json: Json = False, limit: Limit = 50, store: Store = None, config: Config = None) -> None:
    """Show the state changes of an agent, newest first."""
    with open_session(store, config) as (service, user):
        found = service.agents.history(user, agent, limit=limit)
    print_table(found, ("TIME", "STATE", "REASON", "BY"), _change, "No changes.", as_json=json, whole="TIME")


def _change(change: AgentChange) -> tuple[str, ...]:
    stayed = change.before in (None, change.after)
    states = str(change.after) if stayed else f"{change.before} → {change.after}"
    return f"{change.at.astimezone():%Y-%m-%d %H:%M:%S}", states, change.cause, change.by


@app.command()
def watch(
    every: Annotated[
        float | None,
        typer.Option("--every", metavar="DURATION", parser=positive_duration, help="Refresh interval (1s)."),
    ] = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Watch your agents until Ctrl-C.

    Shows a table in a terminal, and one line per change in a pipe. Prints the agents once if Roost is not running.
    """
    from roost.cli.commands.agents import watch as command

    with open_session(store, config) as (service, user):
        if is_local(service):
            command.once(service, user, as_json=json)
            return note_not_running(service, "nothing changes until `roost up` runs")
        return command.run(service, user, every=max(every or 1.0, 0.1), as_json=json)
