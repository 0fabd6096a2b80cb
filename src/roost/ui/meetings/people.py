"""Inputs of participants: own agents, oneself, and addresses that are typed."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from roost.ui.meetings.names import short
from roost.ui.shell import navigation
from roost.ui.shell.navigation import Route
from roost.ui.shell.visit import Visit

SHOWN = 200
"""Agents that are offered; others are typed."""


def back() -> None:
    """Draw the link to the list of meetings."""
    with st.container(key="back"):
        navigation.link(Route.MEETINGS, "← All meetings", icon=False)


def options(visit: Visit, *, with_self: bool = True) -> list[str]:
    """Return the addresses of the user and of their agents."""
    agents = [f"agent:{visit.user}/{one.agent_id}" for one in visit.service.agents.list(visit.user, limit=SHOWN)]
    return [f"user:{visit.user}", *agents] if with_self else agents


def _name(visit: Visit) -> Callable[[str], str]:
    """Return the function that names an option; one that was typed is shown as it is."""
    return lambda address: short(address, visit.user) if address.startswith(("agent:", "user:")) else address


def one(
    label: str,
    offered: list[str],
    visit: Visit,
    *,
    key: str,
    placeholder: str,
    changed: Callable[[], None] | None = None,
) -> None:
    st.selectbox(
        label,
        offered,
        index=None,
        format_func=_name(visit),
        key=key,
        placeholder=placeholder,
        accept_new_options=True,
        on_change=changed,
    )


def several(label: str, offered: list[str], visit: Visit, *, key: str, most: int | None = None, help: str = "") -> None:
    st.multiselect(
        label,
        offered,
        format_func=_name(visit),
        key=key,
        max_selections=most,
        placeholder="Agents, or addresses",
        accept_new_options=True,
        help=help or None,
    )


def addresses(names: object) -> list[str]:
    """Return the addresses of the names that were chosen or typed."""
    return [address(str(name)) for name in names if str(name).strip()] if isinstance(names, list) else []


def address(name: str) -> str:
    """Return an address: a name that was typed alone is that of an agent."""
    return name.strip() if ":" in name else f"agent:{name.strip()}"
