"""What the open talk waits for: a person's word on a call, asked and given above the line to type in."""

from __future__ import annotations

from html import escape

import streamlit as st

from roost.core.approvals import Approval, Question
from roost.errors import RoostError
from roost.service import AgentService
from roost.ui.reading import Reading

NEWEST = 200
"""Among so many the questions of a talk are looked for."""


def asked(service: AgentService, reading: Reading | None) -> tuple[Approval, ...]:
    """What the talk waits for, the oldest first."""
    if reading is None or not reading.running:
        return ()
    found = service.approvals.list(reading.user_id, limit=NEWEST)
    return tuple(one for one in reversed(found) if one.talk_session_id == reading.talk_id)


def draw(service: AgentService, waiting: tuple[Approval, ...]) -> None:
    """One question at a time."""
    with st.container(key="asked"):
        for one in waiting[:1]:
            is_call = one.kind is Question.CALL
            with st.container(key="asking"):
                st.html(f'<div class="roost-notice" role="alert">{escape(one.question())}</div>')
            with st.container(key="deciding", horizontal=True):
                st.button("Allow" if is_call else "Do it again", key="grant", on_click=_grant, args=(service, one))
                st.button("Refuse" if is_call else "Give up", key="refuse", on_click=_refuse, args=(service, one))


def _grant(service: AgentService, one: Approval) -> None:
    try:
        service.approvals.grant(one.user_id, one.approval_id)
    except RoostError as error:
        st.session_state["notice"] = str(error)


def _refuse(service: AgentService, one: Approval) -> None:
    try:
        service.approvals.refuse(one.user_id, one.approval_id)
    except RoostError as error:
        st.session_state["notice"] = str(error)
