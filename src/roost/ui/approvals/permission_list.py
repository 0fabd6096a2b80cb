"""Tools that are always allowed: a list, in which permissions are revoked."""

from __future__ import annotations

import streamlit as st

from roost.core.journal.approvals import Permission, shown_name
from roost.errors import NotFound
from roost.service import AgentService
from roost.ui.design import components
from roost.ui.shell import actions
from roost.ui.shell.visit import Visit
from roost.ui.text import plain

SHOWN = 200


def draw(visit: Visit) -> None:
    found = visit.service.approvals.permissions(visit.user, limit=SHOWN)
    if not found:
        st.caption("None. Choose *Always allow* when a tool asks for your approval.")
    with st.container(key="permissions", gap=None):
        for number, one in enumerate(found):
            _row(visit, number, one)


def _row(visit: Visit, number: int, one: Permission) -> None:
    who = f"agent {one.agent_id}" if one.agent_id else f"profile {one.profile}"
    tool, since = plain(shown_name(one.tool)), components.moment(one.created)
    with st.container(key=f"permission_{number}", horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{tool}** :gray[· {plain(shown_name(who))}, since {since}]")
        st.button(
            "Revoke",
            key=f"revoke_{number}_{one.created.timestamp()}",
            on_click=actions.act,
            args=(_revoke, visit.service, one),
            kwargs={"done": f"Revoked: {tool}"},
        )


def _revoke(service: AgentService, one: Permission) -> None:
    try:
        service.approvals.revoke(one.user_id, one.tool, agent_id=one.agent_id, profile=one.profile)
    except NotFound:
        return  # revoked elsewhere
