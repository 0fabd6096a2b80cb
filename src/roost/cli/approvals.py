"""`roost approvals`: what runs wait for, and a person's word on it."""

from __future__ import annotations

import json as json_module
from collections.abc import Iterator
from typing import Annotated

import typer

from roost.cli.desk import NEWEST, found, note_waiting, opened, short, show, show_list
from roost.cli.find import Service
from roost.cli.options import Config, Json, Limit, Store, group
from roost.cli.tables import ago, at, facts
from roost.cli.text import line, plain
from roost.core.approvals import Approval, Question

app = group()
Name = Annotated[
    str, typer.Argument(metavar="APPROVAL", help="The id of an approval, or any part of it that no other has.")
]
_ASKED = {Question.CALL: "may it be called?", Question.UNKNOWN: "was it done?", Question.STEP: "was it done?"}


@app.command()
def ls(
    every: Annotated[bool, typer.Option("--all", help="What was decided too.")] = False,
    json: Json = False,
    limit: Limit = 50,
    store: Store = None,
    config: Config = None,
) -> None:
    """List what runs wait for, newest first."""
    with opened(store, config) as (service, user):
        listed = service.approvals.list(user, all=every, limit=limit)
    headings = ("ID", "WHO", "QUESTION", "SINCE", "DECIDED", "TOOL")
    show_list(listed, headings, _row, "Nothing waits for you.", as_json=json)


def _row(one: Approval) -> tuple[str, ...]:
    who = one.agent_id or short(one.talk_session_id or "")
    given = json_module.dumps(dict(one.arguments), ensure_ascii=False) if one.arguments else ""
    tool = f"{one.tool} {given}".rstrip()
    return short(one.approval_id), who, _ASKED[one.kind], ago(one.created), one.decision or "", tool


@app.command("show")
def show_one(approval: Name, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Show what is asked, with all arguments."""
    with opened(store, config) as (service, user):
        one = _found(service, user, approval)
    show(one, lambda: _facts(one), as_json=json)


def _facts(one: Approval) -> Iterator[str]:
    yield from facts(
        [
            ("approval", one.approval_id),
            ("tool", one.tool),
            ("question", _ASKED[one.kind]),
            ("agent", one.agent_id),
            ("talk", one.talk_session_id),
            ("run", one.run_id),
            ("step", str(one.step)),
            ("since", at(one.created)),
            ("decided", one.decision),
            ("note", one.note and line(one.note)),
        ]
    )
    yield "\n" + plain(json_module.dumps(dict(one.arguments), indent=2, ensure_ascii=False))


@app.command()
def grant(approval: Name, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Have it done; the agent goes on with what comes of it.

    What may have been done before the program ended is done again.
    """
    with opened(store, config) as (service, user):
        one = service.approvals.grant(user, _found(service, user, approval).approval_id)
        note_waiting(service, "the agent goes on when `roost up` runs")
    show(one, lambda: [f"{line(one.tool)} is granted."], as_json=json)


@app.command()
def refuse(
    approval: Name,
    reason: Annotated[str | None, typer.Option("--reason", help="What the agent is told.")] = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Do not have it done; the agent is told, and goes on without it."""
    with opened(store, config) as (service, user):
        one = service.approvals.refuse(user, _found(service, user, approval).approval_id, reason=reason)
        note_waiting(service, "the agent goes on when `roost up` runs")
    show(one, lambda: [f"{line(one.tool)} is refused."], as_json=json)


@app.command()
def answer(
    approval: Name,
    result: Annotated[
        str, typer.Argument(metavar="RESULT", help="What came of it, of a step as JSON; the agent goes on with that.")
    ],
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """It is done already: the agent goes on with this result."""
    with opened(store, config) as (service, user):
        one = service.approvals.answer(user, _found(service, user, approval).approval_id, result)
        note_waiting(service, "the agent goes on when `roost up` runs")
    show(one, lambda: [f"{line(one.tool)} is answered."], as_json=json)


def _found(service: Service, user: str, part: str) -> Approval:
    return found(
        part, "approvals", lambda name: service.approvals.get(user, name),
        lambda: service.approvals.list(user, all=True, limit=NEWEST), lambda one: one.approval_id,
    )  # fmt: skip
