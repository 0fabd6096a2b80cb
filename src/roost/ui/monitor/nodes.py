"""Nodes: health of this process, and of a cluster its nodes with their load."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from html import escape

import streamlit as st

from roost.core.cluster.nodes import Node, NodeState
from roost.core.monitoring.health import Health
from roost.core.monitoring.metrics import Histogram, MetricTotals
from roost.errors import Forbidden
from roost.ui.design import components
from roost.ui.monitor import series
from roost.ui.shell import actions
from roost.ui.shell.visit import Visit
from roost.ui.table import table
from roost.ui.table.table import Cell, Column, Row, RowAction

TONES = {NodeState.UP: "good", NodeState.DRAINING: "waiting", NodeState.GONE: "quiet"}
STATES = {NodeState.UP: "Up", NodeState.DRAINING: "Draining", NodeState.GONE: "Gone"}
COLUMNS = [
    Column("Node"),
    Column("State"),
    Column("Awake agents", "number"),
    Column("Free places", "number"),
    Column("CPU", "number"),
    Column("Version"),
    Column("Since"),
]
SHOWN_METRICS = {
    "roost_awake_agents": "Awake agents",
    "roost_agents_waiting": "Agents waiting for a place",
    "roost_running": "Running turns",
    "roost_queue_depth": "Envelopes in memory",
    "roost_stuck_agents": "Blocked agents",
    "roost_abandoned_threads": "Abandoned threads",
    "roost_queued_writes": "Queued writes",
    "roost_queued_reads": "Queued reads",
    "roost_worker_restarts_total": "Restarts of workers",
    "roost_dead_letters_total": "Dead letters",
}
"""Numbers of all users together: for the operator."""


def draw(visit: Visit) -> None:
    health = visit.service.health()
    if health.problem:
        components.notice(health.problem)
    if not visit.is_operator:
        st.caption("Numbers of the whole server and its nodes are shown to its operator.")
        return
    _health(health)
    try:
        _nodes(visit)
        _metrics(visit.service.monitor.metrics(visit.user))
    except Forbidden as error:
        components.notice(error)


def _health(health: Health) -> None:
    _tiles(
        "Health of this process",
        {
            "Workers": f"{health.workers} of {health.expected}",
            "Restarts of workers": str(health.restarts),
            "Abandoned threads": str(health.abandoned),
            "Awake agents": str(health.awake),
            "Waiting for a place": str(health.waiting_for_place),
        },
    )


def _tiles(name: str, tiles: dict[str, str]) -> None:
    st.header(name, anchor=False)
    shown = "".join(f"<div><dt>{escape(label)}</dt><dd>{escape(value)}</dd></div>" for label, value in tiles.items())
    st.html(f'<dl class="roost-numbers" aria-label="{escape(name)}">{shown}</dl>')


# --- nodes of a cluster --------------------------------------------------------------------------


def _nodes(visit: Visit) -> None:
    st.header("Nodes", anchor=False)
    nodes = visit.service.nodes.list(visit.user)
    table.draw(
        "nodes",
        "Nodes",
        COLUMNS,
        [_row(node) for node in nodes],
        empty="This process has its store to itself: it is not a node of a cluster.",
        actions=[RowAction("Drain", partial(_drain, visit))],
    )


def _drain(visit: Visit, node_ids: Sequence[str]) -> None:
    drain = partial(visit.service.nodes.drain, visit.user)
    actions.each(drain, node_ids, lambda count: f"Draining {count} node{'' if count == 1 else 's'}.")


def _row(node: Node) -> Row:
    load = node.load
    return Row(
        node.node_id,
        (
            Cell(node.name, title=node.node_id),
            Cell(STATES[node.state], tone=TONES[node.state]),
            str(load.awake),
            str(load.room),
            "–" if load.cpu is None else f"{load.cpu:.0%}",
            node.version,
            components.moment(node.started),
        ),
    )


def _metrics(totals: MetricTotals) -> None:
    tiles = {label: series.number(totals[name].value) for name, label in SHOWN_METRICS.items() if name in totals}
    sizes = [value for value in totals["roost_batch_size"].values.values() if isinstance(value, Histogram)]
    if sizes and (count := sum(one.count for one in sizes)):
        tiles["Operations per commit"] = f"{sum(one.total for one in sizes) / count:.1f}"
    _tiles("All users together", tiles)
    if totals.missing:
        components.notice(f"Not in these numbers, since they did not answer: {', '.join(totals.missing)}")
