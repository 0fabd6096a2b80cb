"""Overview of the monitor: numbers and plots of a range of time, and the newest failed runs."""

from __future__ import annotations

from html import escape

import streamlit as st

from roost.core.journal.run_history import Run
from roost.core.monitoring.figures import FigureName, FigureReport, added, quantile
from roost.core.runs import RunOutcome
from roost.ui.design import components
from roost.ui.kinds import PLURALS
from roost.ui.monitor import plots, ranges, series
from roost.ui.monitor.labels import fault
from roost.ui.shell import navigation
from roost.ui.shell.navigation import Route
from roost.ui.shell.visit import Visit
from roost.ui.table import table
from roost.ui.table.table import Cell, Column, Row
from roost.ui.tour import panel

SHOWN = 10
FAILED = (RunOutcome.FAILED, RunOutcome.LOST)
COLUMNS = [Column("Run"), Column("Agent"), Column("Kind"), Column("Error"), Column("Attempt", "number")]


def draw(visit: Visit) -> None:
    report = ranges.report(visit)
    if not report.series and not visit.service.agents.list(visit.user, limit=1):
        panel.draw(visit, is_empty=True)
    _numbers(report)
    plots.draw(report)
    _errors(visit, report)


# --- numbers -------------------------------------------------------------------------------------


def _numbers(report: FigureReport) -> None:
    """Draw what is most important as numbers."""

    def total(name: FigureName, label: str = "") -> float:
        return sum(one.total for one in report.of(name) if not label or one.label == label)

    runs = report.of(FigureName.RUNS)
    bins = [point.bins for one in runs for point in one.points]
    slow = quantile(added(bins), 0.95) if bins else None
    depths = [value for value in plots.depth(report) if value is not None]
    tiles = {
        "Turns": series.number(sum(one.count for one in runs)),
        "Failed attempts": series.number(sum(one.count for one in report.of(FigureName.ERRORS))),
        "Duration, p95": "–" if slow is None else series.duration(slow),
        "Waiting in inboxes": series.number(depths[-1]) if depths else "–",
        "Tokens": series.number(total(FigureName.TOKENS)),
        "Cost": series.dollars(total(FigureName.COST)),
        "New dead letters": series.number(sum(one.count for one in report.of(FigureName.DEAD_LETTERS))),
    }
    shown = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in tiles.items())
    st.html(f'<dl class="roost-numbers" aria-label="In {ranges.chosen().words}">{shown}</dl>')


# --- errors --------------------------------------------------------------------------------------


def _errors(visit: Visit, report: FigureReport) -> None:
    st.header("Failed runs", anchor=False)
    list_runs = visit.service.runs.list
    newest = [run for outcome in FAILED for run in list_runs(visit.user, outcome=outcome, limit=SHOWN)]
    failed = sorted((run for run in newest if run.ended >= report.since), key=lambda run: run.ended, reverse=True)
    empty = f"No run has failed in {ranges.chosen().words}."
    table.draw("failed", "Failed runs", COLUMNS, [_row(run) for run in failed[:SHOWN]], empty=empty)
    if failed:
        navigation.link(Route.RUNS, "All failed runs", icon=False, outcome=RunOutcome.FAILED)


def _row(run: Run) -> Row:
    who = Cell("Talk", navigation.url(Route.TALKS, talk=run.talk_session_id or ""))
    if run.agent_id:
        who = Cell(run.agent_id, navigation.url(Route.AGENTS, agent=run.agent_id))
    when = Cell(components.moment(run.ended), navigation.url(Route.RUNS, run=run.run_id), title=run.run_id)
    error = Cell(fault(run.fault or run.outcome), tone="bad")
    return Row(run.run_id, (when, who, PLURALS.get(run.kind, run.kind), error, str(run.attempts)))
