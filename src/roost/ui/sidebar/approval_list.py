"""Pending approvals of all talks and agents: their number in the sidebar, and a dialog to decide them."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from roost.core.journal.approvals import Approval
from roost.core.talks.talk import Talk
from roost.service import AgentService
from roost.ui import approvals, dialogs, page_url
from roost.ui.callbacks import uninterrupted
from roost.ui.design import components
from roost.ui.live.approval_cards import explanation, labels
from roost.ui.live.argument_table import argument_table
from roost.ui.text import plain

NAME = "Waiting for your approval"
SHOWN = 20
"""Approvals in the dialog; the next ones follow as these are decided."""


def elsewhere(found: tuple[Approval, ...], talk_id: str | None) -> tuple[Approval, ...]:
    """Return the approvals that do not belong to the open talk, which shows its own."""
    return tuple(approval for approval in found if talk_id is None or approval.talk_session_id != talk_id)


def button(waiting: tuple[Approval, ...]) -> None:
    """Draw the button in the sidebar, if approvals are pending."""
    with st.container(key="waits"):
        if waiting:
            st.button(summary(len(waiting)), key="show_waiting", width="stretch", on_click=dialogs.show, args=(NAME,))


def summary(count: int) -> str:
    many = f"{count} or more" if count >= approvals.NEWEST else str(count)
    return f"{many} waiting for your approval"


def dialog(service: AgentService, user: str, talks: list[Talk]) -> None:
    """Draw the dialog in each run of the page until all approvals are decided, or it is dismissed."""
    if dialogs.shown(NAME) is not None:
        _list(service, user, {talk.talk_session_id: components.title(talk) for talk in talks})


@st.dialog(NAME, width="medium", on_dismiss=dialogs.close)
def _list(service: AgentService, user: str, titles: Mapping[str, str]) -> None:
    if st.session_state.pop("decided", False):
        st.rerun()  # the whole page: the count, and the talk that waited
    problem = st.session_state.pop("undecided", "")
    if problem:
        components.notice(problem)
    waiting = elsewhere(approvals.waiting(service, user), page_url.opened())
    with st.container(key="waiting_list"):
        for approval in waiting[:SHOWN]:
            _ask(service, approval, titles)
    if len(waiting) > SHOWN:
        st.caption(f"{len(waiting) - SHOWN} more follow when these are decided.")
    if not waiting and not problem:
        dialogs.close()
        st.rerun()


def _ask(service: AgentService, approval: Approval, titles: Mapping[str, str]) -> None:
    key = approval.approval_id
    with st.form(f"waits_{key}", enter_to_submit=False):  # Enter after a reason must not approve it
        since = components.moment(approval.created)
        st.markdown(f"**{plain(approval.tool)}** :gray[· {_origin(approval, titles)}, since {since}]")
        if hint := explanation(approval):
            st.text(hint)
        if approval.arguments:
            st.html(f'<div class="roost-arguments">{argument_table(approval)}</div>')
        with st.container(horizontal=True, vertical_alignment="center"):
            for action, label in labels(approval.kind).items():
                decision = (service, approval, action)
                st.form_submit_button(label, key=f"{action}_{key}", on_click=_decide, args=decision)
            st.text_input(
                "Reason",
                key=f"reason_{key}",
                placeholder="Reason, if you decline",
                label_visibility="collapsed",
            )


@uninterrupted
def _decide(service: AgentService, approval: Approval, action: str) -> None:
    user, key = approval.user_id, approval.approval_id
    reason = str(st.session_state.get(f"reason_{key}", ""))
    st.session_state["undecided"] = approvals.decide(service, user, key, action, reason)
    st.session_state["decided"] = True


def _origin(approval: Approval, titles: Mapping[str, str]) -> str:
    talk = titles.get(approval.talk_session_id or "")
    where = f"in the talk *{talk}*" if talk else "in a talk" if approval.talk_session_id else ""
    return f"asked by {plain(approval.agent_id)} {where}".rstrip() if approval.agent_id else f"asked {where}"
