"""Tools that are always allowed: a button in the settings, and a dialog that lists and revokes them."""

from __future__ import annotations

import streamlit as st

from roost.core.journal.approvals import Permission, shown_name
from roost.errors import NotFound, RoostError, public
from roost.service import AgentService
from roost.ui import dialogs
from roost.ui.callbacks import uninterrupted
from roost.ui.design import components
from roost.ui.text import plain

NAME = "Tools always allowed"
SHOWN = 200


def button() -> None:
    st.button(NAME, key="show_permissions", width="stretch", on_click=dialogs.show, args=(NAME,))


def dialog(service: AgentService, user: str) -> None:
    """Draw the dialog in each run of the page until it is dismissed."""
    if dialogs.shown(NAME) is not None:
        _list(service, user)


@st.dialog(NAME, on_dismiss=dialogs.close)
def _list(service: AgentService, user: str) -> None:
    if problem := st.session_state.pop("not_revoked", ""):
        components.notice(problem)
    found = service.approvals.permissions(user, limit=SHOWN)
    if not found:
        st.caption("None. Choose *Always allow* when a tool asks for your approval.")
    for number, one in enumerate(found):
        with st.container(horizontal=True, vertical_alignment="center"):
            who = f"agent {one.agent_id}" if one.agent_id else f"profile {one.profile}"
            since = components.moment(one.created)
            st.markdown(f"**{plain(shown_name(one.tool))}** :gray[· {plain(shown_name(who))}, since {since}]")
            st.button("Revoke", key=f"revoke_{number}_{one.created.timestamp()}", on_click=_revoke, args=(service, one))


@uninterrupted
def _revoke(service: AgentService, one: Permission) -> None:
    try:
        service.approvals.revoke(one.user_id, one.tool, agent_id=one.agent_id, profile=one.profile)
    except NotFound:
        return  # revoked elsewhere
    except RoostError as error:
        st.session_state["not_revoked"] = public(error)
