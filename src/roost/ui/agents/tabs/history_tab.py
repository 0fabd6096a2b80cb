"""History of an agent's states: what changed when, why, and who asked for it."""

from __future__ import annotations

from roost.core.agents.agent import AgentChange
from roost.core.monitoring.health import Inspection
from roost.ui.agents import words
from roost.ui.design.components import browser_zone
from roost.ui.shell import navigation, url_choice
from roost.ui.shell.visit import Visit
from roost.ui.table import table
from roost.ui.table.table import Cell, Column, Row

SHOWN = 100
COLUMNS = [Column("Time"), Column("State"), Column("Cause", "long"), Column("By")]


def draw(visit: Visit, seen: Inspection) -> None:
    before = navigation.asked("before")
    agent_id = seen.agent.agent_id
    found = visit.service.agents.history(visit.user, agent_id, limit=SHOWN + 1, before=before)
    shown = found[:SHOWN]
    rows = [_row(change, visit.user) for change in shown]
    table.draw("history", "History", COLUMNS, rows, empty="No changes.")
    url_choice.pages("before", shown[-1].change_id if len(found) > SHOWN else None)


def _row(change: AgentChange, user: str) -> Row:
    is_same = change.before in (None, change.after)
    states = str(change.after) if is_same else f"{change.before} → {change.after}"
    local = change.at.astimezone(browser_zone())
    cells = (
        f"{local:%Y-%m-%d %H:%M:%S}",
        Cell(states, tone=words.TONES[change.after]),
        change.cause,
        words.who(change.by, user),
    )
    return Row(change.change_id, cells)
