"""History of approvals: decisions with their time, and questions that ended without one."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from roost.core.journal.approvals import Approval, Decision, folded, shown_name
from roost.ui.approvals import origin
from roost.ui.design import components
from roost.ui.messages.approval_cards import verdict
from roost.ui.shell import navigation
from roost.ui.shell.navigation import Route
from roost.ui.shell.url_choice import BEFORE
from roost.ui.shell.visit import Visit
from roost.ui.table import table
from roost.ui.table.table import Cell, Column, Row

SHOWN = 50
CHARACTERS = 300
"""Characters shown of the arguments and of a reason."""
COLUMNS = [
    Column("Tool"),
    Column("Arguments", "long"),
    Column("Decision"),
    Column("Reason or result", "long"),
    Column("Decided"),
    Column("Asked by"),
    Column("Asked"),
]
TONES = {
    Decision.APPROVED: "good",
    Decision.ALLOWED: "good",
    Decision.DECLINED: "bad",
    Decision.ANSWERED: "good",
    None: "quiet",
}


def draw(visit: Visit) -> None:
    service, user, before = visit.service, visit.user, navigation.asked(BEFORE)
    found = service.approvals.list(user, all=True, limit=SHOWN + 1, before=before)
    page = found[:SHOWN]
    waiting = {one.approval_id for one in service.approvals.list(user, limit=SHOWN, before=before)}
    shown = [one for one in page if one.approval_id not in waiting]
    draw_list(visit, shown)
    with st.container(horizontal=True):
        if len(found) > SHOWN:
            navigation.link(Route.APPROVALS, "Older", icon=False, show="decided", before=page[-1].approval_id)
        if before is not None:
            navigation.link(Route.APPROVALS, "Newest", icon=False, show="decided")


def draw_list(visit: Visit, shown: Sequence[Approval]) -> None:
    rows = [_row(one) for one in shown]
    table.draw("decided", "Decided approvals", COLUMNS, rows, empty="No decisions yet.")


def _row(one: Approval) -> Row:
    run = navigation.url(Route.RUNS, run=one.run_id) if one.run_id else ""
    arguments = ", ".join(f"{name[1:-1]}: {text}" for name, text in one.values().items())
    return Row(
        one.approval_id,
        (
            Cell(shown_name(one.tool), run, title="Open the run" if run else ""),
            folded(arguments, CHARACTERS),
            Cell(verdict(one), tone=TONES[one.decision]),
            folded(one.note or "", CHARACTERS),
            components.moment(one.decided) if one.decided else "",
            _asker(one),
            components.moment(one.created),
        ),
    )


def _asker(one: Approval) -> Cell:
    """Return who asked, with a link to the talk, else to the agent."""
    if one.talk_session_id:
        return Cell(origin.asker(one), navigation.url(Route.TALKS, talk=one.talk_session_id))
    if one.agent_id:
        return Cell(one.agent_id, navigation.url(Route.AGENTS, agent=one.agent_id))
    return Cell(origin.asker(one))
