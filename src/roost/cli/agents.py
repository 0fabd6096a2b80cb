"""`roost agents`: make them, look at them, start and stop them, put them to sleep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from roost.cli.agent_settings import with_settings
from roost.cli.commands import choice, share
from roost.cli.desk import NEWEST, missing, note_waiting, opened, short, show, show_list
from roost.cli.find import Service
from roost.cli.memories import forget, memories, remember
from roost.cli.options import Agent, Config, Json, Limit, Store, Urgency, group, urgency
from roost.cli.tables import ago, at, facts, lasting, listing, some_time, to_come
from roost.cli.text import line
from roost.core import agents, wake
from roost.core.agents import AgentChange, State
from roost.core.approvals import Approval
from roost.core.health import AgentHealth
from roost.protocol.faces import shown
from roost.service import AgentService

app = group()
DURATIONS = {"check_mail_interval", "retry_delay", "task_expiry", "idle_timeout"}
HEADINGS = ("AGENT", "STATE", "INBOX", "DOING", "ACTIVE", "PROFILE", "WAKES")

InState = Annotated[
    str | None,
    typer.Option("--state", parser=choice("the state", State), help="idle, active, sleeping, waiting or stopped."),
]


@app.command()
def ls(
    state: InState = None,
    json: Json = False,
    limit: Limit = 200,
    store: Store = None,
    config: Config = None,
) -> None:
    """List your agents, by name."""
    with opened(store, config) as (service, user):
        listed = service.agents.list(user, limit=limit, state=state)
    show(listed, lambda: rows(listed), as_json=json)


def rows(listed: list[agents.Agent]) -> Iterator[str]:
    return listing(listed, HEADINGS, row, "No agents: make one with `roost agents create NAME`.")


def row(agent: agents.Agent) -> tuple[str, ...]:
    doing = _doing(agent.current_tasks[0]) if agent.current_tasks else ""
    if len(agent.current_tasks) > 1:
        doing += f" +{len(agent.current_tasks) - 1}"
    return (
        agent.agent_id, state_of(agent), str(agent.queue_depth or ""), doing, ago(agent.last_active),
        agent.config.profile or "(default)", _until(agent, ago),
    )  # fmt: skip


def _doing(envelope_id: str) -> str:
    """A task by the end of its id, and a turn in a meeting by the end of the meeting's."""
    first, _, turn = envelope_id.partition(":")
    return f"meeting {short(first)}" if turn else short(first)


def state_of(agent: agents.Agent) -> str:
    return f"{agent.state}, paused" if agent.paused else str(agent.state)


def _until(agent: agents.Agent, tell: Callable[[datetime], str]) -> str:
    """What it sleeps until, in words."""
    if agent.wake_condition is None:
        return ""
    return wake.described(agent.wake_condition, lambda time: tell(datetime.fromtimestamp(time, UTC)))


@app.command("show")
def show_one(agent: Agent, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Show an agent and its settings."""
    with opened(store, config) as (service, user):
        seen = service.agents.inspect(user, agent)
        asked = [one for one in service.approvals.list(user, limit=NEWEST) if one.agent_id == seen.agent.agent_id]
    show(
        shown(seen.agent) | {"memories": seen.memories, "health": seen.health},
        lambda: (*_questions(asked), *_facts(seen.agent, seen.memories, seen.health)), as_json=json,
    )  # fmt: skip


def _questions(asked: list[Approval]) -> Iterator[str]:
    for one in reversed(asked):
        yield line(one.question())
        yield f"  roost approvals grant|refuse {short(one.approval_id)}"
        yield ""


def _facts(agent: agents.Agent, remembered: int, health: AgentHealth) -> Iterator[str]:
    if health is AgentHealth.PROFILE_MISSING:
        yield line(f"{missing(agent)}: what it has to do waits until `roost up` runs where it is set up,")
        yield line(f"or until it has another one: roost agents set {agent.agent_id} --profile NAME")
        yield ""
    yield from facts(
        [
            ("agent", agent.agent_id),
            ("state", state_of(agent)),
            ("health", health),
            ("inbox", f"{agent.queue_depth} waiting"),
            ("doing", ", ".join(agent.current_tasks)),
            ("sleeps until", _until(agent, at)),
            ("last woken by", agent.wake_reason),
            ("failures", str(agent.error_count or "")),
            ("remembers", f"{remembered:,}" if remembered else ""),
            ("last active", at(agent.last_active)),
            ("made", at(agent.created)),
        ]
    )
    yield ""
    yield from facts((field.name, _setting(agent.config, field.name)) for field in fields(agent.config))


def _setting(config: agents.AgentConfig, name: str) -> str:
    value = getattr(config, name)
    if name in DURATIONS:
        return "never" if value is None else lasting(value)
    if name == "subscriptions":
        return ", ".join(one.pattern + (f" {one.fields_json()}" if one.fields else "") for one in value)
    if name == "groups":
        return ", ".join(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) or {"profile": "(default)"}.get(name, "")


@app.command()
@with_settings
def create(
    agent: Agent,
    settings: dict[str, Any],
    stopped: Annotated[bool, typer.Option("--stopped", help="Do not start it yet.")] = False,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Make an agent, which lives until it is deleted.

    \b
    For example:
      roost agents create d --profile echo --max-concurrent-tasks 2
    """
    with opened(store, config) as (service, user):
        made = service.agents.create(user, agent, start=not stopped, **settings)
    show(made, lambda: [told(made)], as_json=json)


@app.command("set")
@with_settings
def configure(
    agent: Agent, settings: dict[str, Any], json: Json = False, store: Store = None, config: Config = None
) -> None:
    """Change settings of an agent.

    Those not named stay as they are.

    \b
    For example:
      roost agents set d --max-concurrent-tasks 5 --subscribe "alerts.*"
    """
    if not settings:
        raise typer.BadParameter("name a setting to change: `roost agents set --help` tells all")
    with opened(store, config) as (service, user):
        changed = service.agents.configure(user, agent, **settings)
    show(changed, lambda: _changed(changed, settings), as_json=json)


def _changed(agent: agents.Agent, settings: dict[str, Any]) -> Iterator[str]:
    return facts((name, _setting(agent.config, name) or "(none)") for name in settings)


def told(agent: agents.Agent) -> str:
    """What one is told after asking for something."""
    if agent.state is State.SLEEPING and (until := _until(agent, at)):
        return line(f"{agent.agent_id} is sleeping until {until}{', and paused' if agent.paused else ''}.")
    return line(f"{agent.agent_id} is {state_of(agent)}.")


def _simple(name: str, about: str, call: Callable[[Service, str, str], agents.Agent]) -> None:
    """A command that asks an agent to do something, and tells how it is then."""

    def command(agent: Agent, json: Json = False, store: Store = None, config: Config = None) -> None:
        with opened(store, config) as (service, user):
            changed = call(service, user, agent)
        show(changed, lambda: [told(changed)], as_json=json)

    app.command(name, help=about)(command)


_simple("start", "Let a stopped agent work again.", lambda s, user, agent: s.agents.start(user, agent))
_simple("stop", "End what an agent does, at once; its inbox stays.", lambda s, user, agent: s.agents.stop(user, agent))
_simple("restart", "Stop an agent and start it again.", lambda s, user, agent: s.agents.restart(user, agent))
_simple("pause", "Have an agent begin nothing new.", lambda s, user, agent: s.agents.pause(user, agent))
_simple("resume", "Let a paused agent go on.", lambda s, user, agent: s.agents.resume(user, agent))


@app.command()
def sleep(
    agent: Agent,
    seconds: Annotated[
        float | None, typer.Option("--for", metavar="DURATION", parser=some_time, help="For so long, such as 30m.")
    ] = None,
    until: Annotated[
        datetime | None, typer.Option("--until", metavar="TIME", parser=to_come, help="Until then: 2030-01-01T09:00Z.")
    ] = None,
    on_event: Annotated[
        list[str] | None, typer.Option("--on-event", metavar="EVENT", help="Until such an event; may be given again.")
    ] = None,
    on_mail: Annotated[
        str | None,
        typer.Option("--on-mail", metavar="PRIORITY", parser=urgency, help="Until mail of at least this priority."),
    ] = None,
    on_load: Annotated[
        float | None,
        typer.Option("--on-load", metavar="SHARE", parser=share, help="Until less of the processors is in use: 0.5."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Wake when all of these have come, not any of them.")] = False,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Put an agent to sleep when what it does has ended.

    It sleeps until any of these comes; without options, and with a time alone, mail wakes it too.

    \b
    For example:
      roost agents sleep d --for 30m --on-event "alerts.*" --on-mail high
    """
    if seconds is not None:
        if until is not None:
            raise typer.BadParameter("give --for or --until, not both")
        until = datetime.now(UTC) + timedelta(seconds=seconds)
    if every and until is None and not on_event and not on_mail and on_load is None:
        raise typer.BadParameter("--all needs what to wait for: a time, --on-event, --on-mail or --on-load")
    times = [wake.at(until)] if until is not None else []
    others = [wake.event(pattern) for pattern in on_event or []]
    others += [wake.mail(on_mail)] if on_mail else []
    others += [wake.load_below(cpu=on_load)] if on_load is not None else []
    with opened(store, config) as (service, user):
        if every and times + others:
            asleep = service.agents.sleep(user, agent, wake_on=wake.all_of(*times, *others))
        else:
            asleep = service.agents.sleep(user, agent, until=until, wake_on=wake.any_of(*others) if others else None)
    later = "" if asleep.state is State.SLEEPING else " It sleeps when what it does has ended."
    show(asleep, lambda: [told(asleep) + later], as_json=json)


@app.command("wake")
def wake_up(
    agent: Agent,
    reason: Annotated[str, typer.Option("--reason", help="Why, for its history.")] = "asked for",
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Wake an agent, whatever it waits for."""
    with opened(store, config) as (service, user):
        before = service.agents.get(user, agent)
        awake = service.agents.wake(user, agent, reason)
    slept = before.state is State.SLEEPING or before.wake_condition is not None
    nothing = line(f"{awake.agent_id} does not sleep: it is {state_of(awake)}.")
    show(awake, lambda: [told(awake) if slept else nothing], as_json=json)


@app.command()
def broadcast(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to tell them.")],
    to_group: Annotated[str | None, typer.Option("--group", metavar="NAME", help="Only those in this group.")] = None,
    profile: Annotated[str | None, typer.Option("--profile", help="Only those that think so.")] = None,
    ids: Annotated[str | None, typer.Option("--ids", metavar="PATTERN", help="Only those such as worker-*.")] = None,
    state: InState = None,
    priority: Urgency = "normal",
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Tell all of your agents something, or those that you choose.

    \b
    For example:
      roost agents broadcast "the doors close at nine" --group night --ids "guard-*"
    """
    with opened(store, config) as (service, user):
        count = service.agents.broadcast(
            user, text, group=to_group, profile=profile, ids=ids, state=state, priority=priority
        )  # fmt: skip
        note_waiting(service)
    show({"agents": count}, lambda: [f"Told {count:,} agent{'s' * (count != 1)}."], as_json=json)


@app.command()
def delete(agent: Agent, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Delete an agent with everything that belongs to it."""
    with opened(store, config) as (service, user):
        service.agents.delete(user, agent)
    show({"agentId": agent, "deleted": True}, lambda: [f"{line(agent)} is deleted."], as_json=json)


@app.command()
def history(agent: Agent, json: Json = False, limit: Limit = 50, store: Store = None, config: Config = None) -> None:
    """Show the changes of an agent's state, newest first."""
    with opened(store, config) as (service, user):
        found = service.agents.history(user, agent, limit=limit)
    show_list(found, ("WHEN", "STATE", "WHY", "BY"), _change, "No changes.", as_json=json, whole="WHEN")


def _change(change: AgentChange) -> tuple[str, ...]:
    stayed = change.before in (None, change.after)
    states = str(change.after) if stayed else f"{change.before} → {change.after}"
    return f"{change.at.astimezone():%Y-%m-%d %H:%M:%S}", states, change.cause, change.by


for _command in (memories, remember, forget):
    app.command()(_command)


@app.command()
def watch(
    every: Annotated[
        float | None, typer.Option("--every", metavar="DURATION", parser=some_time, help="How often to look (1s).")
    ] = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Watch your agents, until Ctrl-C.

    In a terminal as a table; through a pipe, one line for each change. Where nothing runs, they are shown once.
    """
    from roost.cli import watch as command

    with opened(store, config) as (service, user):
        if isinstance(service, AgentService):
            command.once(service, user, as_json=json)
            return note_waiting(service, "nothing happens here until `roost up` runs")
        return command.run(service, user, every=max(every or 1.0, 0.1), as_json=json)
