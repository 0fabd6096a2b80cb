"""`roost approvals`: tool calls that wait for a person's decision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from roost.cli.app.connect import Service
from roost.cli.app.options import Config, Json, Limit, Store, command_group
from roost.cli.app.shared import NEWEST, find_by_id, note_not_running, open_session
from roost.cli.render.output import print_result, print_table, short_id
from roost.cli.render.tables import key_values, local_time, relative_time
from roost.cli.render.text import single_line
from roost.core.journal.approvals import Approval, Permission, Question, folded, visible

app = command_group()
Name = Annotated[str, typer.Argument(metavar="APPROVAL", help="Id of an approval, or a unique part of it.")]
_ASKED = {Question.CALL: "may it be called?", Question.UNKNOWN: "was it done?", Question.STEP: "was it done?"}


@app.command()
def ls(
    every: Annotated[bool, typer.Option("--all", help="Include decided ones.")] = False,
    json: Json = False,
    limit: Limit = 50,
    store: Store = None,
    config: Config = None,
) -> None:
    """List pending approvals, newest first."""
    with open_session(store, config) as (service, user):
        listed = service.approvals.list(user, all=every, limit=limit)
    headings = ("ID", "AGENT", "QUESTION", "SINCE", "DECISION", "TOOL")
    print_table(listed, headings, _row, "No pending approvals.", as_json=json)


def _row(one: Approval) -> tuple[str, ...]:
    who = one.agent_id or short_id(one.talk_session_id or "")
    given = ", ".join(f"{name}: {folded(text)}" for name, text in one.values().items())
    tool = f"{one.tool} {{{given}}}" if given else one.tool
    return short_id(one.approval_id), who, _ASKED[one.kind], relative_time(one.created), one.decision or "", tool


@app.command("show")
def show_one(approval: Name, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Show an approval with all arguments."""
    with open_session(store, config) as (service, user):
        one = _find(service, user, approval)
    print_result(one, lambda: _facts(one), as_json=json)


def _facts(one: Approval) -> Iterator[str]:
    yield from key_values(
        [
            ("approval", one.approval_id),
            ("tool", one.tool),
            ("question", _ASKED[one.kind]),
            ("agent", one.agent_id),
            ("talk", one.talk_session_id),
            ("run", one.run_id),
            ("step", str(one.step)),
            ("since", local_time(one.created)),
            ("decision", one.decision),
            ("note", one.note and single_line(one.note)),
        ]
    )
    yield "\n" + visible(dict(one.arguments), indent=2)


@app.command()
def approve(approval: Name, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Approve a call: it is executed and the agent continues.

    A call that was interrupted by the end of the program is executed again.
    """
    with open_session(store, config) as (service, user):
        one = service.approvals.approve(user, _find(service, user, approval).approval_id)
        note_not_running(service, "the agent continues when `roost up` runs")
    print_result(one, lambda: [f"{single_line(one.tool)} was approved."], as_json=json)


@app.command()
def decline(
    approval: Name,
    reason: Annotated[str | None, typer.Option("--reason", help="Reason given to the agent.")] = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Decline a call: the agent continues without it."""
    with open_session(store, config) as (service, user):
        one = service.approvals.decline(user, _find(service, user, approval).approval_id, reason=reason)
        note_not_running(service, "the agent continues when `roost up` runs")
    print_result(one, lambda: [f"{single_line(one.tool)} was declined."], as_json=json)


@app.command()
def answer(
    approval: Name,
    result: Annotated[str, typer.Argument(metavar="RESULT", help="Result of the call; for a step, as JSON.")],
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Supply the result of a call that is already done."""
    with open_session(store, config) as (service, user):
        one = service.approvals.answer(user, _find(service, user, approval).approval_id, result)
        note_not_running(service, "the agent continues when `roost up` runs")
    print_result(one, lambda: [f"{single_line(one.tool)} was answered."], as_json=json)


@app.command("allow-always")
def allow_always(approval: Name, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Approve a call and all later ones of this tool.

    The permission is for the same agent, or for the profile if there is no agent.
    """
    with open_session(store, config) as (service, user):
        one = service.approvals.allow_always(user, _find(service, user, approval).approval_id)
        note_not_running(service, "the agent continues when `roost up` runs")
    print_result(one, lambda: [f"{single_line(one.tool)} is always allowed."], as_json=json)


@app.command()
def permissions(json: Json = False, limit: Limit = 50, store: Store = None, config: Config = None) -> None:
    """List tools that agents and profiles may call without asking."""
    with open_session(store, config) as (service, user):
        listed = service.approvals.permissions(user, limit=limit)
    print_table(listed, ("TOOL", "AGENT", "PROFILE", "SINCE"), _permission_row, "No permissions.", as_json=json)


def _permission_row(one: Permission) -> tuple[str, ...]:
    return one.tool, one.agent_id or "", one.profile or "", relative_time(one.created)


@app.command()
def revoke(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="Name of the tool.")],
    agent: Annotated[str | None, typer.Option("--agent", help="Agent that has the permission.")] = None,
    profile: Annotated[str | None, typer.Option("--profile", help="Profile that has the permission.")] = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Revoke a permission: the next call asks again."""
    with open_session(store, config) as (service, user):
        service.approvals.revoke(user, tool, agent_id=agent, profile=profile)
    print_result({"tool": tool, "revoked": True}, lambda: [f"{single_line(tool)} asks again."], as_json=json)


def _find(service: Service, user: str, part: str) -> Approval:
    return find_by_id(
        part,
        "approvals",
        lambda name: service.approvals.get(user, name),
        lambda: service.approvals.list(user, all=True, limit=NEWEST),
        lambda one: one.approval_id,
    )
