"""Approvals that the open talk waits for, shown above the message input."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import streamlit as st

from roost.core.journal.approvals import LONG, Approval, Question, shown_name
from roost.errors import RoostError, public
from roost.service import AgentService
from roost.ui.talk_reader import TalkReader

BEGINNING = 80
"""Characters shown of a collapsed argument."""
NEWEST = 200
"""Most approvals that are read at once."""


def waiting(service: AgentService, user: str) -> tuple[Approval, ...]:
    """Return all pending approvals of this user, oldest first."""
    return tuple(reversed(service.approvals.list(user, limit=NEWEST)))


def here(found: tuple[Approval, ...], reading: TalkReader | None) -> tuple[Approval, ...]:
    """Return the pending approvals of the open talk."""
    if reading is None or not reading.running:
        return ()
    return tuple(approval for approval in found if approval.talk_session_id == reading.talk_id)


def words(approval: Approval) -> tuple[str, str]:
    """Return the labels of the buttons that approve and deny."""
    return ("Approve", "Deny") if approval.kind is Question.CALL else ("Run again", "Give up")


def draw(service: AgentService, asked: tuple[Approval, ...]) -> None:
    """Draw the first pending approval."""
    with st.container(key="asked"):
        for approval in asked[:1]:
            yes, no = words(approval)
            with st.container(key="asking"):
                st.html(f'<div class="roost-notice" role="alert">{escape(asking(approval))}</div>{arguments(approval)}')
            with st.container(key="deciding", horizontal=True):
                st.button(yes, key="grant", on_click=_decide, args=(service, approval, True))
                st.button(no, key="refuse", on_click=_decide, args=(service, approval, False))


def asking(approval: Approval) -> str:
    """Return the question; long arguments are drawn below it."""
    is_long = approval.kind is Question.CALL and approval.is_folded
    return f"May this be done? {shown_name(approval.tool)}" if is_long else approval.question()


def arguments(approval: Approval, *, always: bool = False) -> str:
    """Return the arguments as HTML: long ones are collapsed, and expand in the browser.

    Return nothing if the question contains them completely, unless `always`.
    """
    if not approval.arguments or not (always or approval.is_folded):
        return ""
    return f'<div class="roost-arguments" tabindex="0">{"".join(_rows(approval))}</div>'


def _rows(approval: Approval) -> Iterator[str]:
    for name, text in approval.values(indent=2).items():
        if len(text) <= LONG:
            yield f"<pre>{escape(f'{name}: {text}')}</pre>"
        else:
            beginning = " ".join(text[:BEGINNING].split())
            summary = f"{name}: {beginning}… ({len(text):,} characters, click to show all)"
            yield f"<details><summary>{escape(summary)}</summary><pre>{escape(text)}</pre></details>"


def _decide(service: AgentService, approval: Approval, granted: bool) -> None:
    if problem := decide(service, approval, granted=granted):
        st.session_state["notice"] = problem


def decide(service: AgentService, approval: Approval, *, granted: bool, reason: str = "") -> str:
    """Record the decision; return the problem, if there is one."""
    try:
        if granted:
            service.approvals.grant(approval.user_id, approval.approval_id)
        else:
            service.approvals.refuse(approval.user_id, approval.approval_id, reason=reason.strip() or None)
    except RoostError as error:
        return public(error)
    return ""
