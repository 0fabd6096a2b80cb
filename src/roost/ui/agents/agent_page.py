"""One agent: its state and what one can do with it, and a section for each thing that belongs to it."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from roost.core.monitoring.health import Inspection
from roost.ui.agents import controls
from roost.ui.agents.tabs import history_tab, inbox_tab, memory_tab, overview, schedules_tab, settings_tab, tasks_tab
from roost.ui.shell import frame, live, navigation, url_choice
from roost.ui.shell.navigation import Route
from roost.ui.shell.visit import Visit

TABS: dict[str, tuple[str, Callable[[Visit, Inspection], None]]] = {
    "overview": ("Overview", overview.draw),
    "inbox": ("Inbox", inbox_tab.draw),
    "tasks": ("Tasks", tasks_tab.draw),
    "schedules": ("Schedules", schedules_tab.draw),
    "memory": ("Memory", memory_tab.draw),
    "settings": ("Settings", settings_tab.draw),
    "history": ("History", history_tab.draw),
}
CURSORS = ("after", "before", "status", "task", "find")
"""Parts of the URL that belong to one section."""
_KEY = "agent_tab"


def page(visit: Visit, agent_id: str) -> None:
    frame.draw(visit, Route.AGENTS, title=agent_id, actions=_back)
    live.draw(visit, lambda: _agent(visit, agent_id))


def _back() -> None:
    navigation.link(Route.AGENTS, "All agents", icon=False)


def _agent(visit: Visit, agent_id: str) -> None:
    seen = visit.service.agents.inspect(visit.user, agent_id)
    controls.draw(visit, seen)
    _tab()(visit, seen)
    controls.dialogs(visit, seen)


def _tab() -> Callable[[Visit, Inspection], None]:
    """Draw the names of the sections; return the one that the URL names."""
    asked = navigation.asked("tab") or ""
    opened = asked if asked in TABS else "overview"
    st.session_state[_KEY] = TABS[opened][0]  # each time: a value that is set once may be lost in the browser
    labels = [label for label, _ in TABS.values()]
    st.segmented_control(
        "Section", labels, key=_KEY, on_change=_choose, label_visibility="collapsed", required=True, wrap=False
    )
    return TABS[opened][1]


def _choose() -> None:
    names = {label: name for name, (label, _) in TABS.items()}
    name = names.get(str(st.session_state[_KEY]), "overview")
    url_choice.show(tab="" if name == "overview" else name, **dict.fromkeys(CURSORS))
