"""Origin of an approval: the agent or profile that asked, its talk, and its run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

import streamlit as st

from roost.core.journal.approvals import Approval
from roost.errors import NotFound
from roost.service import AgentService
from roost.ui.design import components
from roost.ui.shell import navigation
from roost.ui.shell.navigation import Route
from roost.ui.text import plain

MOST = 200
"""Newest talks and runs that are read at once; of older runs the link is missing."""


def titles(service: AgentService, user: str, found: Iterable[Approval]) -> dict[str, str]:
    """Return the titles of the talks that ask, escaped, by their ids."""
    asked = {one.talk_session_id for one in found if one.talk_session_id}
    if not asked:
        return {}
    talks = {talk.talk_session_id: talk for talk in service.list_sessions(user, limit=MOST)}
    for talk_id in asked - talks.keys():
        with suppress(NotFound):
            talks[talk_id] = service.get_session(user, talk_id)
    return {talk_id: components.title(talks[talk_id]) for talk_id in asked & talks.keys()}


def ended_runs(service: AgentService, user: str, found: Iterable[Approval]) -> set[str]:
    """Return the runs behind approvals that can be looked at: not those that are still under way."""
    asked = {one.run_id for one in found if one.run_id}
    return asked & {run.run_id for run in service.runs.list(user, limit=MOST)} if asked else set()


def links(approval: Approval, titles: Mapping[str, str], runs: set[str]) -> None:
    """Draw links to the agent, the talk and the run of an approval."""
    with st.container(key=f"origin_{approval.approval_id}", horizontal=True):
        if approval.agent_id:
            navigation.link(Route.AGENTS, f"Agent {plain(approval.agent_id)}", agent=approval.agent_id)
        if (talk := approval.talk_session_id or "") in titles:
            navigation.link(Route.TALKS, f"Talk: {titles[talk]}", talk=talk)
        if (run := approval.run_id or "") in runs:
            navigation.link(Route.RUNS, "Run", run=run)


def asker(approval: Approval) -> str:
    """Return who asked, as plain text."""
    return f"agent {approval.agent_id}" if approval.agent_id else f"profile {approval.profile}"
