"""`roost tasks`: give agents something to do, and see what came of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from roost.cli.commands import choice, count
from roost.cli.desk import (
    NEWEST,
    check_agent,
    found,
    missing,
    note_rest,
    note_rest_of,
    note_waiting,
    opened,
    short,
    show,
    show_list,
)
from roost.cli.find import Service
from roost.cli.options import Agent, Config, Json, Limit, OfAgent, Store, Urgency, group
from roost.cli.tables import ago, at, duration, facts, some_time
from roost.cli.text import line, plain
from roost.core import tasks
from roost.core.health import AgentHealth
from roost.core.tasks import TaskStatus
from roost.errors import NotFound
from roost.service import AgentService

app = group()
Task = Annotated[str, typer.Argument(metavar="TASK", help="The id of a task, or any part of it that no other has.")]
Timeout = Annotated[
    float | None, typer.Option("--timeout", metavar="DURATION", parser=duration, help="Wait no longer than this.")
]


@app.command()
def send(
    agent: Agent,
    prompt: Annotated[str, typer.Argument(metavar="TASK", help="What it shall do; - reads it from standard input.")],
    wait: Annotated[bool, typer.Option("--wait", help="Wait for it, and print what comes of it.")] = False,
    timeout: Timeout = None,
    priority: Urgency = "normal",
    expires: Annotated[
        float | None, typer.Option("--expires", metavar="DURATION", parser=some_time, help="How long it may wait.")
    ] = None,
    attempts: Annotated[
        int | None, typer.Option("--max-attempts", metavar="N", parser=count(1, 1000), help="How often it is tried.")
    ] = None,
    key: Annotated[str | None, typer.Option("--key", help="With the same key again it is the same task.")] = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Give an agent something to do.

    \b
    For example:
      roost tasks send d "Check system health" --wait
    """
    with opened(store, config, hosting=wait) as (service, user):
        text = sys.stdin.read() if prompt == "-" else prompt
        task_id = service.tasks.send(
            user, agent, text, priority=priority, key=key, expires_in=expires, max_attempts=attempts
        )
        if not wait:
            note_waiting(service, "the task is kept until `roost up` runs; with --wait it is done here")
            note_rest_of(service, user, agent)
            sent = service.tasks.get(user, task_id)
            return show(sent, lambda: [task_id], as_json=json)
        over = _waited_for(service, user, agent, task_id, timeout)
    return _end(over, as_json=json)


def _waited_for(service: Service, user: str, agent: str, task_id: str, timeout: float | None) -> tasks.Task:
    """The task when it is over; as it is, if nobody here would ever do it."""
    try:
        if _may_wait(service, user, agent):
            return service.tasks.wait(user, task_id, timeout)
        return service.tasks.get(user, task_id)
    except KeyboardInterrupt:
        goes_on = "is kept until `roost up` runs" if isinstance(service, AgentService) else "goes on"
        print(f"roost: the task {goes_on}; {_waits_on(task_id)}", file=sys.stderr)
        raise


def _waits_on(task_id: str) -> str:
    return f"`roost tasks wait {task_id}` waits on"


def _may_wait(service: Service, user: str, agent: str) -> bool:
    """Whether the agent can do it here; nobody waits without knowing why."""
    try:
        seen = service.agents.inspect(user, agent.removeprefix("agent:"))
    except NotFound:  # someone else's, who shares it
        return True
    there = seen.agent
    if seen.health is AgentHealth.PROFILE_MISSING:
        print(f"roost: {line(missing(there))}: it does this where it is known", file=sys.stderr)
        return False
    if note_rest(there):
        # Where this command alone has the store, nobody else can have the agent go on.
        return not isinstance(service, AgentService) or (there.sleep_until is not None and not there.paused)
    return True


def _end(task: tasks.Task, *, as_json: bool) -> None:
    """Print what came of it; the exit code says whether it is done."""
    if as_json:
        show(task, list, as_json=True)
    elif task.result:
        print(plain(task.result))
    if task.status is not TaskStatus.DONE:
        waits = "" if task.is_over else f": it is not over yet; {_waits_on(task.task_id)}"
        print(f"roost: the task is {task.status}{waits}{_why(task)}", file=sys.stderr)
        raise typer.Exit(1)


def _why(task: tasks.Task) -> str:
    return f": {line(task.error)}" if task.error else ""


@app.command()
def ls(
    agent: OfAgent = None,
    status: Annotated[
        str | None,
        typer.Option(
            "--status",
            parser=choice("the status", TaskStatus),
            help="queued, running, waiting, done, failed, cancelled or expired.",
        ),
    ] = None,
    json: Json = False,
    limit: Limit = 50,
    store: Store = None,
    config: Config = None,
) -> None:
    """List tasks, newest first."""
    with opened(store, config) as (service, user):
        listed = service.tasks.list(user, agent=agent, status=status, limit=limit)
        check_agent(service, user, agent, listed)
    show_list(listed, ("ID", "AGENT", "STATUS", "SENT", "TASK"), _row, "No tasks.", as_json=json)


def _row(task: tasks.Task) -> tuple[str, ...]:
    return short(task.task_id), task.agent_id, task.status, ago(task.created), task.prompt


@app.command("show")
def show_one(task: Task, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Show a task and what came of it."""
    with opened(store, config) as (service, user):
        one = _found(service, user, task)
    show(one, lambda: _facts(one), as_json=json)


def _found(service: Service, user: str, part: str) -> tasks.Task:
    return found(
        part, "tasks", lambda name: service.tasks.get(user, name),
        lambda: service.tasks.list(user, limit=NEWEST), lambda task: task.task_id,
    )  # fmt: skip


def _facts(task: tasks.Task) -> Iterator[str]:
    yield from facts(
        [
            ("task", task.task_id),
            ("agent", task.agent_id),
            ("status", task.status),
            ("priority", task.priority),
            ("from", task.sender),
            ("schedule", task.schedule_id),
            ("sent", at(task.created)),
            ("started", at(task.started)),
            ("ended", at(task.ended)),
            ("expires", at(task.expires)),
            ("tries", str(task.attempts or "")),
            ("error", task.error),
        ]
    )
    yield f"\n{plain(task.prompt)}"
    if task.result:
        yield f"\n→ {plain(task.result)}"


@app.command()
def cancel(task: Task, json: Json = False, store: Store = None, config: Config = None) -> None:
    """End a task wherever it stands."""
    with opened(store, config) as (service, user):
        before = _found(service, user, task)
        one = service.tasks.cancel(user, before.task_id)
    show(one, lambda: [f"{short(one.task_id)} {'was' if before.is_over else 'is'} {one.status}."], as_json=json)


@app.command()
def wait(task: Task, timeout: Timeout = None, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Wait for a task, and print what comes of it.

    The exit code is 0 if it is done.
    """
    with opened(store, config, hosting=True) as (service, user):
        one = _found(service, user, task)
        over = one if one.is_over else _waited_for(service, user, one.agent_id, one.task_id, timeout)
    _end(over, as_json=json)
