"""Plots of the monitor: which figure each of them shows, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from roost.core.agents.agent import State
from roost.core.monitoring.figures import FigureName, FigureReport
from roost.ui.chart import chart
from roost.ui.chart.chart import Kind, Plotted, Unit
from roost.ui.kinds import PLURALS
from roost.ui.monitor import ranges
from roost.ui.monitor.labels import FAULTS, STATES
from roost.ui.monitor.series import dollars, gauges, number, quantiles, summed

SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
DIRECTIONS = {"input": "Input", "output": "Output"}


@dataclass(frozen=True, slots=True)
class Plot:
    name: str
    series: Sequence[Plotted]
    empty: str
    kind: Kind = "bar"
    unit: Unit = "count"


def draw(report: FigureReport) -> None:
    with st.container(key="plots"):
        for key, plot in _plots(report).items():
            empty = f"{plot.empty} in {ranges.chosen().words}."
            with st.container(key=f"plot_{key}"):
                chart.draw(
                    f"chart_{key}",
                    plot.name,
                    plot.series,
                    start=report.since,
                    step=report.width,
                    empty=empty,
                    kind=plot.kind,
                    unit=plot.unit,
                )


def _plots(report: FigureReport) -> dict[str, Plot]:
    names, each = FigureName, f"per {ranges.width(report.width)}"
    tokens = summed(report, names.TOKENS, DIRECTIONS, value=lambda one: one.total)
    cost = summed(report, names.COST, value=lambda one: one.total, shown=dollars)
    queue = [Plotted("Waiting", tuple(depth(report)))]
    late = quantiles(report, names.LATENESS, SHARES)
    return {
        "runs": Plot(f"Turns {each}", summed(report, names.RUNS, PLURALS), "No turns"),
        "latency": Plot("Duration of turns", quantiles(report, names.RUNS, SHARES), "No turns", "line", "seconds"),
        "states": Plot("Agents by state", _states(report), "Nothing has changed", "area"),
        "queue": Plot("Waiting in inboxes", queue, "Nothing was sent to an agent", "line"),
        "waited": Plot("Wait before a turn", quantiles(report, names.WAITED, SHARES), "No turns", "line", "seconds"),
        "late": Plot("Lateness of timers", late, "No timers", "line", "seconds"),
        "tokens": Plot(f"Tokens {each}", tokens, "No model was called"),
        "cost": Plot(f"Cost {each}", cost, "No call had a known price", "bar", "dollars"),
        "errors": Plot(f"Failed attempts {each}", summed(report, names.ERRORS, FAULTS), "No attempt has failed"),
        "dead": Plot(f"Dead letters and lost runs {each}", _lost(report), "Nothing was lost"),
    }


def depth(report: FigureReport) -> Sequence[float | None]:
    """Return the depth of all inboxes; for users with very many agents that of awake ones."""
    found = gauges(report, FigureName.QUEUE)
    return found.get("") or found.get("awake") or ()


def _lost(report: FigureReport) -> list[Plotted]:
    lost = summed(report, FigureName.LOST, PLURALS)
    return [
        *summed(report, FigureName.DEAD_LETTERS, PLURALS),
        *(Plotted(f"Lost runs: {one.label}", one.values, one.total) for one in lost),
    ]


def _states(report: FigureReport) -> list[Plotted]:
    """Return the number of agents in each state. Those at work are counted as idle, too: that is where they rest."""
    found = gauges(report, FigureName.AGENTS)
    busy = [found[state] for state in (State.ACTIVE, State.WAITING) if state in found]
    if idle := found.get(State.IDLE):
        working = [sum(one[place] or 0 for one in busy) for place in range(len(idle))]
        found[State.IDLE] = [
            None if value is None else max(0.0, value - at_work) for value, at_work in zip(idle, working, strict=True)
        ]
    return [
        Plotted(label, tuple(found[state]), _last(found[state])) for state, label in STATES.items() if state in found
    ]


def _last(values: Sequence[float | None]) -> str:
    last = values[-1] if values else None
    return "" if last is None else number(last)
