"""Inbox of an agent: what it handles now, and what waits, in the order in which it is handled."""

from __future__ import annotations

import streamlit as st

from roost.core.envelopes.envelope import Kind
from roost.core.envelopes.lanes import meeting_of
from roost.core.envelopes.waiting import Waiting
from roost.core.monitoring.health import Inspection
from roost.ui import kinds
from roost.ui.agents import words
from roost.ui.design.components import moment
from roost.ui.shell import navigation, url_choice
from roost.ui.shell.navigation import Route
from roost.ui.shell.visit import Visit
from roost.ui.table import table
from roost.ui.table.table import Cell, Column, Row

SHOWN = 100
COLUMNS = [
    Column("What", "long"),
    Column("Kind"),
    Column("From"),
    Column("Priority"),
    Column("Sent"),
    Column("Status"),
]


def draw(visit: Visit, seen: Inspection) -> None:
    agent = seen.agent
    after = navigation.asked("after") or ""
    found = visit.service.agents.inbox(visit.user, agent.agent_id, limit=SHOWN + 1, after=after)
    shown = found[:SHOWN]
    depth = agent.queue_depth
    st.caption(f"{depth:,} in its inbox, in the order in which it takes them." if depth else "")
    rows = [_row(one, visit.user, agent.agent_id, one.envelope_id in agent.current_tasks) for one in shown]
    table.draw("inbox", "Inbox", COLUMNS, rows, empty="The inbox is empty.")
    url_choice.pages("after", shown[-1].envelope_id if len(found) > SHOWN else None)


def _row(one: Waiting, user: str, agent_id: str, is_running: bool) -> Row:
    cells = (
        Cell(words.short(one.text) or kinds.label(one.kind), _url(one, agent_id), title=one.text),
        kinds.label(one.kind),
        words.who(one.sender, user) if one.sender else "",
        str(one.priority),
        moment(one.created),
        _status(one, is_running),
    )
    return Row(one.envelope_id, cells)


def _status(one: Waiting, is_running: bool) -> Cell:
    if is_running:
        return Cell("running", tone="busy")
    if one.is_parked:
        return Cell("waits for your approval", navigation.url(Route.APPROVALS), "waiting")
    if one.failures:
        times = "once" if one.failures == 1 else f"{one.failures} times"
        after = f", again after {moment(one.due)}" if one.due is not None else ""
        return Cell(f"failed {times}{after}", tone="bad")
    return Cell("waits", tone="quiet")


def _url(one: Waiting, agent_id: str) -> str:
    if one.kind is Kind.TASK:
        return words.agent_url(agent_id, tab="tasks", task=one.envelope_id)
    if one.kind is Kind.TALK:
        return navigation.url(Route.TALKS, talk=one.lane)
    if one.kind is Kind.MEETING:
        return navigation.url(Route.MEETINGS, meeting=meeting_of(one.lane))
    return navigation.url(Route.MAIL, box=f"agent:{agent_id}") if one.kind is Kind.MAIL else ""
