"""Facts: the newest things that have happened, as they happen."""

from __future__ import annotations

import json

import streamlit as st

from roost.core.monitoring.facts import Fact, Name
from roost.ui.design import components
from roost.ui.shell import navigation, url_choice
from roost.ui.shell.navigation import Route
from roost.ui.shell.visit import Visit
from roost.ui.table import table
from roost.ui.table.table import Cell, Column, Row

LOOK, SHOWN, DATA_SHOWN = 500, 100, 300
COLUMNS = [Column("When"), Column("Fact"), Column("About"), Column("Run"), Column("Data", "long")]
BAD = ("Failed", "Stuck", "Died", "Expired", "Missed", "Restarted")
"""Ends of names of facts that report a failure."""


def draw(visit: Visit) -> None:
    with st.container(key="fact_filters", horizontal=True, vertical_alignment="bottom"):
        about = url_choice.search("Agent", "about", "Any agent", icon=None)
        names = url_choice.several("Facts", "fact", _NAMES, "All facts")
    newest = visit.service.monitor.facts(visit.user, limit=LOOK).facts
    found = [one for one in reversed(newest) if _matches(visit, one, about, names)][:SHOWN]
    empty = "None of the newest facts matches." if newest else "Nothing has happened since Roost was started."
    table.draw("facts", "Newest facts", COLUMNS, [_row(visit, one) for one in found], empty=empty)


_NAMES = [str(name) for name in Name]


def _matches(visit: Visit, fact: Fact, about: str, names: list[str]) -> bool:
    return (not names or fact.name in names) and (not about or fact.about in (about, f"{visit.user}/{about}"))


def _row(visit: Visit, fact: Fact) -> Row:
    data = {name: value for name, value in fact.data.items() if name != "run_id" and value not in (None, "")}
    text = json.dumps(data, ensure_ascii=False, default=str)[1:-1]
    run_id = fact.data.get("run_id")
    name = Cell(fact.name, tone="bad") if fact.name.endswith(BAD) or "fault" in fact.data else fact.name
    run = Cell("Open run", navigation.url(Route.RUNS, run=str(run_id))) if run_id else ""
    when = components.moment(fact.at)
    return Row(fact.cursor, (when, name, _about(visit, fact), run, text[:DATA_SHOWN]))


def _about(visit: Visit, fact: Fact) -> Cell | str:
    about = fact.about or ""
    if about.startswith(f"{visit.user}/"):
        agent = about.removeprefix(f"{visit.user}/")
        return Cell(agent, navigation.url(Route.AGENTS, agent=agent))
    return Cell("Talk", navigation.url(Route.TALKS, talk=about)) if about.startswith("talk_") else about
