"""Approvals that runs wait for, each with a form to decide it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import streamlit as st

from roost.core.journal.approvals import Approval, Question, shown_name
from roost.ui.approvals import origin, pending
from roost.ui.approvals.pending import ANSWER
from roost.ui.callbacks import uninterrupted
from roost.ui.design import components
from roost.ui.messages.approval_cards import ALWAYS, APPROVE, DECLINE, labels
from roost.ui.messages.argument_table import argument_table
from roost.ui.shell import actions, navigation
from roost.ui.shell.navigation import Route
from roost.ui.shell.url_choice import BEFORE
from roost.ui.shell.visit import Visit
from roost.ui.text import plain

SHOWN = 20
INTERRUPTED = (
    "Roost stopped during this step, so it is not known whether it was done. Check, and decide how to continue."
)
_DONE = {APPROVE: "Approved", DECLINE: "Declined", ALWAYS: "Always allowed", ANSWER: "Result recorded"}


def draw(visit: Visit) -> None:
    service, user, before = visit.service, visit.user, navigation.asked(BEFORE)
    found = service.approvals.list(user, limit=SHOWN + 1, before=before)
    if not found:
        st.caption("Nothing waits for your approval." if before is None else "No older approvals wait.")
    shown = found[:SHOWN]
    draw_list(visit, shown)
    with st.container(horizontal=True):
        if len(found) > SHOWN:
            navigation.link(Route.APPROVALS, "Older", icon=False, before=shown[-1].approval_id)
        if before is not None:
            navigation.link(Route.APPROVALS, "Newest", icon=False)


def draw_list(visit: Visit, shown: Sequence[Approval]) -> None:
    titles = origin.titles(visit.service, visit.user, shown)
    runs = origin.ended_runs(visit.service, visit.user, shown)
    with st.container(key="waiting_list"):
        for approval in shown:
            _ask(visit, approval, titles, runs)


def _ask(visit: Visit, approval: Approval, titles: Mapping[str, str], runs: set[str]) -> None:
    key = approval.approval_id
    with st.container(key=f"asked_{key}", border=True):
        since = f"asked by {origin.asker(approval)}, since {components.moment(approval.created)}"
        st.html(
            f'<header class="roost-asked"><h2>{escape(shown_name(approval.tool))}</h2>'
            f"<span>{escape(since)}</span></header>"
        )
        if approval.kind is not Question.CALL:
            st.text(INTERRUPTED)
        if approval.arguments:
            st.html(f'<div class="roost-arguments">{argument_table(approval)}</div>')
        _form(visit, approval)
        origin.links(approval, titles, runs)


def _form(visit: Visit, approval: Approval) -> None:
    key, name = approval.approval_id, shown_name(approval.tool)
    with st.form(f"waits_{key}", border=False, enter_to_submit=False):  # Enter after a reason must not approve it
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.text_input("Reason, if you decline", key=f"reason_{key}")
            for action, label in labels(approval.kind).items():
                _button(visit, approval, action, label, f"reason_{key}")
        if approval.kind is not Question.CALL:
            as_json = " as JSON" if approval.kind is Question.STEP else ""
            with st.container(horizontal=True, vertical_alignment="bottom"):
                st.text_area(f"Result{as_json}, if {plain(name)} was done", key=f"result_{key}", height=68)
                _button(visit, approval, ANSWER, "Record result", f"result_{key}")


def _button(visit: Visit, approval: Approval, action: str, label: str, field: str) -> None:
    st.form_submit_button(
        label,
        key=f"{action}_{approval.approval_id}",
        type="primary" if action == APPROVE and approval.kind is Question.CALL else "secondary",
        on_click=_decide,
        args=(visit, approval, action, field),
    )


@uninterrupted
def _decide(visit: Visit, approval: Approval, action: str, field: str) -> None:
    text = str(st.session_state.get(field) or "")
    done = f"{_DONE[action]}: {shown_name(approval.tool)}"
    actions.act(pending.record, visit.service, visit.user, approval.approval_id, action, text, done=done)
