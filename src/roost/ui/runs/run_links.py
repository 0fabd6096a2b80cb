"""Links from a run to everything that it belongs to."""

from __future__ import annotations

import streamlit as st

from roost.core.journal.run_history import RunEntry
from roost.ui.shell import navigation
from roost.ui.shell.navigation import Route
from roost.ui.text import plain


def draw(entry: RunEntry) -> None:
    """Draw links to the agent, the talk, the meeting and the approvals of a run."""
    run = entry.run
    with st.container(key="run_links", horizontal=True):
        if run.agent_id is not None:
            navigation.link(Route.AGENTS, plain(run.agent_id), agent=run.agent_id)
            navigation.link(Route.RUNS, "Runs of this agent", agent=run.agent_id)
        if run.talk_session_id is not None:
            navigation.link(Route.TALKS, "Open talk", talk=run.talk_session_id)
            navigation.link(Route.RUNS, "Runs of this talk", talk=run.talk_session_id)
        if run.meeting_id is not None and navigation.is_shown(Route.MEETINGS):
            navigation.link(Route.MEETINGS, "Open meeting", meeting=run.meeting_id)
        if any(step.outcome == "asked" for step in entry.steps) and navigation.is_shown(Route.APPROVALS):
            navigation.link(Route.APPROVALS, "Decide its approval")
