"""What waits for a person's word: asked by the open talk above the line to type in, and decided there or in a list."""

from __future__ import annotations

from html import escape

import streamlit as st

from roost.core.approvals import Approval, Question
from roost.errors import RoostError
from roost.service import AgentService
from roost.ui.reading import Reading

NEWEST = 200
"""So many are looked at."""


def waiting(service: AgentService, user: str) -> tuple[Approval, ...]:
    """All that waits for this person's word, the oldest first."""
    return tuple(reversed(service.approvals.list(user, limit=NEWEST)))


def here(found: tuple[Approval, ...], reading: Reading | None) -> tuple[Approval, ...]:
    """What the open talk waits for."""
    if reading is None or not reading.running:
        return ()
    return tuple(one for one in found if one.talk_session_id == reading.talk_id)


def words(one: Approval) -> tuple[str, str]:
    """What the buttons say that have it done, and not done."""
    return ("Allow", "Refuse") if one.kind is Question.CALL else ("Do it again", "Give up")


def draw(service: AgentService, asked: tuple[Approval, ...]) -> None:
    """One question at a time."""
    with st.container(key="asked"):
        for one in asked[:1]:
            yes, no = words(one)
            with st.container(key="asking"):
                st.html(f'<div class="roost-notice" role="alert">{escape(one.question())}</div>')
            with st.container(key="deciding", horizontal=True):
                st.button(yes, key="grant", on_click=_decide, args=(service, one, True))
                st.button(no, key="refuse", on_click=_decide, args=(service, one, False))


def _decide(service: AgentService, one: Approval, granted: bool) -> None:
    if problem := decide(service, one, granted=granted):
        st.session_state["notice"] = problem


def decide(service: AgentService, one: Approval, *, granted: bool, reason: str = "") -> str:
    """Say the person's word; what is wrong with it, if anything is."""
    try:
        if granted:
            service.approvals.grant(one.user_id, one.approval_id)
        else:
            service.approvals.refuse(one.user_id, one.approval_id, reason=reason.strip() or None)
    except RoostError as error:
        return str(error)
    return ""
