"""Element of graphs for Streamlit's pages: nodes that are links, and edges whose width is their weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from roost.ui.elements import element
from roost.ui.table.table import follow_opened, keep_opened

Shape = Literal["circle", "square", "diamond"]


@dataclass(frozen=True, slots=True)
class GraphNode:
    node_id: str
    label: str
    shape: Shape = "circle"
    href: str = ""


@dataclass(frozen=True, slots=True)
class GraphEdge:
    source: str
    target: str
    weight: int


_mount = element("roost_graph", __file__, "graph")


def draw(key: str, name: str, nodes: Sequence[GraphNode], edges: Sequence[GraphEdge]) -> None:
    """Draw a graph; a link that is clicked opens its page. Pages show the same edges as a table, too."""
    data = {
        "name": name,
        "nodes": [{"id": one.node_id, "label": one.label, "shape": one.shape, "href": one.href} for one in nodes],
        "edges": [{"from": one.source, "to": one.target, "weight": one.weight} for one in edges],
    }
    _mount(key=key, data=data, on_open_change=partial(keep_opened, key))
    follow_opened()
