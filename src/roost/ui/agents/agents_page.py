"""Agents of the user: a live table with filters, and what can be done with several at once."""

from __future__ import annotations

from typing import Any

import streamlit as st

from roost.core.agents.agent import Agent, State
from roost.ui.agents import agent_page, bulk, create_page, words
from roost.ui.design.components import moment
from roost.ui.shell import frame, live, navigation, url_choice
from roost.ui.shell.navigation import Route
from roost.ui.shell.visit import Visit
from roost.ui.table import table
from roost.ui.table.table import Cell, Column, Row
from roost.ui.tour import panel

SHOWN = 100
COLUMNS = [
    Column("Agent"),
    Column("State"),
    Column("Inbox", "number"),
    Column("Working on", "long"),
    Column("Next wake", "long"),
    Column("Last error", "long"),
    Column("Profile"),
    Column("Last active"),
]
ALL = "all"
STATES = [ALL, *State, "paused", "failing"]


def page(visit: Visit) -> None:
    """Draw the list, or with `agent` in the URL this agent, or with `new` the form for a new one."""
    agent_id = navigation.asked("agent")
    if agent_id is not None:
        agent_page.page(visit, agent_id)
    elif navigation.asked("new") is not None:
        create_page.page(visit)
    else:
        frame.draw(visit, Route.AGENTS, actions=_new)
        live.draw(visit, lambda: _list(visit))
        bulk.dialog(visit)


def _new() -> None:
    st.button(
        "New agent",
        key="new_agent",
        type="primary",
        icon=":material/add:",
        on_click=url_choice.show,
        kwargs={"new": "1"},
    )


def _list(visit: Visit) -> None:
    wanted = _filters(visit)
    after = navigation.asked("after") or ""
    found = visit.service.agents.list(visit.user, limit=SHOWN + 1, after=after, **wanted)
    shown = found[:SHOWN]
    empty = "No agents match these filters." if wanted or after else "No agents yet. Create the first one above."
    rows = [_row(agent) for agent in shown]
    table.draw("agents", "Agents", COLUMNS, rows, empty=empty, actions=bulk.actions_on(visit))
    url_choice.pages("after", shown[-1].agent_id if len(found) > SHOWN else None)
    panel.draw(visit, is_empty=not (found or wanted or after))


def _filters(visit: Visit) -> dict[str, Any]:
    """Draw the filters; return them as arguments of the list."""
    with st.container(key="filters", horizontal=True, vertical_alignment="bottom"):
        text = url_choice.search("Search", "text", "Name or description")
        state = url_choice.choice("State", "state", STATES, {ALL: "All"})
        profiles = [ALL, words.DEFAULT, *(profile.name for profile in visit.service.profiles())]
        profile = url_choice.choice("Profile", "profile", profiles, {ALL: "All", words.DEFAULT: "Default profile"})
    wanted: dict[str, Any] = {"text": text} if text else {}
    if state in ("paused", "failing"):
        wanted[state] = True
    elif state != ALL:
        wanted["state"] = state
    if profile != ALL:
        wanted["profile"] = "" if profile == words.DEFAULT else profile
    return wanted


def _row(agent: Agent) -> Row:
    about = agent.config.description
    cells = (
        Cell(agent.agent_id, words.agent_url(agent.agent_id), title=words.short(about, 300)),
        words.state_cell(agent),
        str(agent.queue_depth or ""),
        words.work(agent),
        words.next_wake(agent),
        words.error_cell(agent.last_error),
        agent.config.profile or words.DEFAULT,
        moment(agent.last_active),
    )
    return Row(agent.agent_id, cells)
