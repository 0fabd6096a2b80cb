"""Graph of who talks to whom: the most frequent pairs, and the same as a table."""

from __future__ import annotations

import streamlit as st

from roost.core.monitoring.figures import OTHERS
from roost.ui.graph import graph
from roost.ui.graph.graph import GraphEdge, GraphNode, Shape
from roost.ui.monitor import ranges
from roost.ui.shell import navigation
from roost.ui.shell.navigation import Route
from roost.ui.shell.visit import Visit
from roost.ui.table import table
from roost.ui.table.table import Cell, Column, Row

EDGES = 50
COLUMNS = [Column("From"), Column("To"), Column("Messages", "number")]


def draw(visit: Visit) -> None:
    shown = ranges.chosen()
    edges = visit.service.monitor.edges(visit.user, since=shown.since, limit=EDGES)
    if not edges:
        st.caption(f"Nobody has sent a task, a message, mail or an event in {shown.words}.")
        return
    names = dict.fromkeys(name for edge in edges for name in (edge.sender, edge.recipient))
    nodes = [_node(visit, name) for name in names]
    graph.draw("graph", "Who talks to whom", nodes, [GraphEdge(one.sender, one.recipient, one.count) for one in edges])
    st.header("Most frequent", anchor=False)
    cells = {node.node_id: Cell(node.label, node.href) for node in nodes}
    rows = [
        Row(f"{one.sender} {one.recipient}", (cells[one.sender], cells[one.recipient], f"{one.count:,}"))
        for one in edges
    ]
    table.draw("edges", "Who talks to whom", COLUMNS, rows, empty="")


def _node(visit: Visit, address: str) -> GraphNode:
    kind, _, key = address.partition(":")
    shape: Shape = {"agent": "circle", "user": "square"}.get(kind, "diamond")  # type: ignore[assignment]
    if kind == "agent":
        agent = key.rpartition("/")[2]
        return GraphNode(address, agent, shape, navigation.url(Route.AGENTS, agent=agent))
    if address == OTHERS:
        return GraphNode(address, "Other users", shape)
    return GraphNode(address, {"user": "You", "schedule": "Schedule"}.get(kind, address), shape)
