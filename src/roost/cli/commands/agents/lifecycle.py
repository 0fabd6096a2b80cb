"""`roost agents`: commands that change the state of an agent, and `broadcast`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from roost.cli.app.agent_options import InState
from roost.cli.app.connect import Service
from roost.cli.app.durations import future_time, positive_duration
from roost.cli.app.options import Agent, Config, Json, PriorityOption, Store, command_group, parse_priority
from roost.cli.app.shared import note_not_running, open_session
from roost.cli.app.typer_ext import parse_share
from roost.cli.render.agents import state_sentence, state_text
from roost.cli.render.output import print_result
from roost.cli.render.text import single_line
from roost.core.agents import agent as agents
from roost.core.agents import wake
from roost.core.agents.agent import State

app = command_group()


def _simple(name: str, about: str, call: Callable[[Service, str, str], agents.Agent]) -> None:
    """Add a command that calls the service for one agent and prints the new state."""

    def command(agent: Agent, json: Json = False, store: Store = None, config: Config = None) -> None:
        with open_session(store, config) as (service, user):
            changed = call(service, user, agent)
        print_result(changed, lambda: [state_sentence(changed)], as_json=json)

    app.command(name, help=about)(command)


_simple("start", "Start a stopped agent.", lambda s, user, agent: s.agents.start(user, agent))
_simple("stop", "Stop an agent at once; its inbox is kept.", lambda s, user, agent: s.agents.stop(user, agent))
_simple("restart", "Stop an agent and start it again.", lambda s, user, agent: s.agents.restart(user, agent))
_simple("pause", "Pause an agent: it starts no new work.", lambda s, user, agent: s.agents.pause(user, agent))
_simple("resume", "Resume a paused agent.", lambda s, user, agent: s.agents.resume(user, agent))


@app.command()
def sleep(
    agent: Agent,
    seconds: Annotated[
        float | None,
        typer.Option("--for", metavar="DURATION", parser=positive_duration, help="Sleep for this long, such as 30m."),
    ] = None,
    until: Annotated[
        datetime | None,
        typer.Option("--until", metavar="TIME", parser=future_time, help="Sleep until this time: 2030-01-01T09:00Z."),
    ] = None,
    on_event: Annotated[
        list[str] | None, typer.Option("--on-event", metavar="EVENT", help="Wake on this event; can be repeated.")
    ] = None,
    on_mail: Annotated[
        str | None,
        typer.Option(
            "--on-mail", metavar="PRIORITY", parser=parse_priority, help="Wake on mail of at least this priority."
        ),
    ] = None,
    on_load: Annotated[
        float | None,
        typer.Option(
            "--on-load", metavar="SHARE", parser=parse_share, help="Wake when the CPU load is below this share: 0.5."
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Wake when all conditions are met, not just one.")] = False,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Put an agent to sleep after its current work.

    It sleeps until one of the conditions is met. Without options, or with only a time, mail wakes it too.

    \b
    For example:
      roost agents sleep d --for 30m --on-event "alerts.*" --on-mail high
    """
    if seconds is not None:
        if until is not None:
            raise typer.BadParameter("--for and --until cannot be combined")
        until = datetime.now(UTC) + timedelta(seconds=seconds)
    if every and until is None and not on_event and not on_mail and on_load is None:
        raise typer.BadParameter("--all needs a condition: a time, --on-event, --on-mail or --on-load")
    times = [wake.at(until)] if until is not None else []
    others = [wake.event(pattern) for pattern in on_event or []]
    others += [wake.mail(on_mail)] if on_mail else []
    others += [wake.load_below(cpu=on_load)] if on_load is not None else []
    with open_session(store, config) as (service, user):
        if every and times + others:
            asleep = service.agents.sleep(user, agent, wake_on=wake.all_of(*times, *others))
        else:
            asleep = service.agents.sleep(user, agent, until=until, wake_on=wake.any_of(*others) if others else None)
    later = "" if asleep.state is State.SLEEPING else " It sleeps after its current work."
    print_result(asleep, lambda: [state_sentence(asleep) + later], as_json=json)


@app.command("wake")
def wake_up(
    agent: Agent,
    reason: Annotated[str, typer.Option("--reason", help="Reason, shown in its history.")] = "asked for",
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Wake an agent now."""
    with open_session(store, config) as (service, user):
        before = service.agents.get(user, agent)
        awake = service.agents.wake(user, agent, reason)
    slept = before.state is State.SLEEPING or before.wake_condition is not None
    nothing = single_line(f"{awake.agent_id} is not sleeping: it is {state_text(awake)}.")
    print_result(awake, lambda: [state_sentence(awake) if slept else nothing], as_json=json)


@app.command()
def broadcast(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Text of the message.")],
    to_group: Annotated[str | None, typer.Option("--group", metavar="NAME", help="Only agents in this group.")] = None,
    profile: Annotated[str | None, typer.Option("--profile", help="Only agents with this profile.")] = None,
    ids: Annotated[
        str | None, typer.Option("--ids", metavar="PATTERN", help="Only agents whose id matches, such as worker-*.")
    ] = None,
    state: InState = None,
    priority: PriorityOption = "normal",
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Send a message to all your agents, or to some of them.

    \b
    For example:
      roost agents broadcast "the doors close at nine" --group night --ids "guard-*"
    """
    with open_session(store, config) as (service, user):
        count = service.agents.broadcast(
            user, text, group=to_group, profile=profile, ids=ids, state=state, priority=priority
        )
        note_not_running(service)
    print_result({"agents": count}, lambda: [f"Sent to {count:,} agent{'s' * (count != 1)}."], as_json=json)


@app.command()
def delete(agent: Agent, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Delete an agent and all its data."""
    with open_session(store, config) as (service, user):
        service.agents.delete(user, agent)
    print_result({"agentId": agent, "deleted": True}, lambda: [f"{single_line(agent)} is deleted."], as_json=json)
