"""Monitor: plots and lists of what happens, one section at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from roost.ui.monitor import dead_letters, events, facts, graph_tab, nodes, overview, ranges
from roost.ui.shell import frame, live, url_choice
from roost.ui.shell.navigation import Route
from roost.ui.shell.visit import Visit

STYLE = Path(__file__).with_name("monitor.css")
TABS: dict[str, tuple[str, Callable[[Visit], None]]] = {
    "overview": ("Overview", overview.draw),
    "dead-letters": ("Dead letters", dead_letters.draw),
    "events": ("Events", events.draw),
    "graph": ("Who talks to whom", graph_tab.draw),
    "nodes": ("Nodes", nodes.draw),
    "facts": ("Facts", facts.draw),
}
PLOTTED = ("overview", "graph")
"""Sections that show a range of time, and are drawn again when its newest figures are there."""


def page(visit: Visit) -> None:
    st.html(STYLE)
    frame.draw(visit, Route.MONITOR)
    with st.container(key="monitor_choices", horizontal=True, vertical_alignment="center"):
        tab = url_choice.segments("tab", "Section", {name: label for name, (label, _) in TABS.items()})
        if tab in PLOTTED:
            ranges.choose()
    every = ranges.chosen().refresh if tab in PLOTTED else 0.0
    live.draw(visit, lambda: TABS[tab][1](visit), every=every)
