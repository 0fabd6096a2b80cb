"""`roost tasks`: send tasks to agents and read their results."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from roost.cli.app.connect import Service, is_local
from roost.cli.app.durations import duration, positive_duration
from roost.cli.app.options import Agent, Config, Json, Limit, OfAgent, PriorityOption, Store, command_group
from roost.cli.app.shared import (
    NEWEST,
    check_agent,
    find_by_id,
    missing_profile,
    note_if_inactive,
    note_inactive,
    note_not_running,
    open_session,
)
from roost.cli.app.typer_ext import parse_choice, parse_count
from roost.cli.render.output import print_result, print_table, short_id
from roost.cli.render.tables import key_values, local_time, relative_time
from roost.cli.render.text import sanitize, single_line
from roost.core.envelopes import tasks
from roost.core.envelopes.tasks import TaskStatus
from roost.core.monitoring.health import AgentHealth
from roost.errors import NotFound

app = command_group()
Task = Annotated[str, typer.Argument(metavar="TASK", help="Id of a task, or a unique part of it.")]
Timeout = Annotated[
    float | None, typer.Option("--timeout", metavar="DURATION", parser=duration, help="Maximum time to wait.")
]


@app.command()
def send(
    agent: Agent,
    prompt: Annotated[str, typer.Argument(metavar="TASK", help="Prompt of the task; - reads standard input.")],
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the task and print its result.")] = False,
    timeout: Timeout = None,
    priority: PriorityOption = "normal",
    expires: Annotated[
        float | None,
        typer.Option(
            "--expires",
            metavar="DURATION",
            parser=positive_duration,
            help="Time after which it expires if not started.",
        ),
    ] = None,
    attempts: Annotated[
        int | None,
        typer.Option(
            "--max-attempts",
            metavar="N",
            parser=parse_count(1, 1000),
            help="Number of attempts (default: that of the agent).",
        ),
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", help="Idempotency key: the same key returns the same task.")
    ] = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Send a task to an agent.

    \b
    For example:
      roost tasks send d "Check system health" --wait
    """
    with open_session(store, config, hosting=wait) as (service, user):
        text = sys.stdin.read() if prompt == "-" else prompt
        task_id = service.tasks.send(
            user, agent, text, priority=priority, key=key, expires_in=expires, max_attempts=attempts
        )
        if not wait:
            note_not_running(service, "the task is queued until `roost up` runs; use --wait to run it here")
            note_if_inactive(service, user, agent)
            sent = service.tasks.get(user, task_id)
            return print_result(sent, lambda: [task_id], as_json=json)
        over = _waited_for(service, user, agent, task_id, timeout)
    return _end(over, as_json=json)


def _waited_for(service: Service, user: str, agent: str, task_id: str, timeout: float | None) -> tasks.Task:
    """Wait for a task and return it; return it at once if it cannot be executed here."""
    try:
        if _may_wait(service, user, agent):
            return service.tasks.wait(user, task_id, timeout)
        return service.tasks.get(user, task_id)
    except KeyboardInterrupt:
        fate = "stays queued until `roost up` runs" if is_local(service) else "continues"
        print(f"roost: the task {fate}; {_waits_on(task_id)}", file=sys.stderr)
        raise


def _waits_on(task_id: str) -> str:
    return f"`roost tasks wait {task_id}` waits for it again"


def _may_wait(service: Service, user: str, agent: str) -> bool:
    """Return True if the agent can do it here, else print the reason."""
    try:
        seen = service.agents.inspect(user, agent.removeprefix("agent:"))
    except NotFound:  # a shared agent of another user
        return True
    there = seen.agent
    if seen.health is AgentHealth.PROFILE_MISSING:
        print(
            f"roost: {single_line(missing_profile(there))}: it does this where the profile is configured",
            file=sys.stderr,
        )
        return False
    if note_inactive(there):
        # Only this command has the store, so nobody else can resume the agent.
        return not is_local(service) or (there.sleep_until is not None and not there.paused)
    return True


def _end(task: tasks.Task, *, as_json: bool) -> None:
    """Print the result; exit with 1 if the task is not done."""
    if as_json:
        print_result(task, list, as_json=True)
    elif task.result:
        print(sanitize(task.result))
    if task.status is not TaskStatus.DONE:
        waits = "" if task.is_over else f": it has not finished yet; {_waits_on(task.task_id)}"
        print(f"roost: the task is {task.status}{waits}{_why(task)}", file=sys.stderr)
        raise typer.Exit(1)


def _why(task: tasks.Task) -> str:
    return f": {single_line(task.error)}" if task.error else ""


@app.command()
def ls(
    agent: OfAgent = None,
    status: Annotated[
        str | None,
        typer.Option(
            "--status",
            parser=parse_choice("the status", TaskStatus),
            help="Only queued, running, waiting, done, failed, cancelled or expired.",
        ),
    ] = None,
    json: Json = False,
    limit: Limit = 50,
    store: Store = None,
    config: Config = None,
) -> None:
    """List tasks, newest first."""
    with open_session(store, config) as (service, user):
        listed = service.tasks.list(user, agent=agent, status=status, limit=limit)
        check_agent(service, user, agent, listed)
    print_table(listed, ("ID", "AGENT", "STATUS", "SENT", "TASK"), _row, "No tasks.", as_json=json)


def _row(task: tasks.Task) -> tuple[str, ...]:
    return short_id(task.task_id), task.agent_id, task.status, relative_time(task.created), task.prompt


@app.command("show")
def show_one(task: Task, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Show a task and its result."""
    with open_session(store, config) as (service, user):
        one = _find(service, user, task)
    print_result(one, lambda: _facts(one), as_json=json)


def _find(service: Service, user: str, part: str) -> tasks.Task:
    return find_by_id(
        part,
        "tasks",
        lambda name: service.tasks.get(user, name),
        lambda: service.tasks.list(user, limit=NEWEST),
        lambda task: task.task_id,
    )


def _facts(task: tasks.Task) -> Iterator[str]:
    yield from key_values(
        [
            ("task", task.task_id),
            ("agent", task.agent_id),
            ("status", task.status),
            ("priority", task.priority),
            ("from", task.sender),
            ("schedule", task.schedule_id),
            ("sent", local_time(task.created)),
            ("started", local_time(task.started)),
            ("ended", local_time(task.ended)),
            ("expires", local_time(task.expires)),
            ("attempts", str(task.attempts or "")),
            ("error", task.error),
        ]
    )
    yield f"\n{sanitize(task.prompt)}"
    if task.result:
        yield f"\n→ {sanitize(task.result)}"


@app.command()
def cancel(task: Task, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Cancel a task that is queued or running."""
    with open_session(store, config) as (service, user):
        before = _find(service, user, task)
        one = service.tasks.cancel(user, before.task_id)
    print_result(
        one, lambda: [f"{short_id(one.task_id)} {'was' if before.is_over else 'is'} {one.status}."], as_json=json
    )


@app.command()
def wait(task: Task, timeout: Timeout = None, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Wait for a task and print its result.

    The exit code is 0 if the task is done.
    """
    with open_session(store, config, hosting=True) as (service, user):
        one = _find(service, user, task)
        over = one if one.is_over else _waited_for(service, user, one.agent_id, one.task_id, timeout)
    _end(over, as_json=json)
