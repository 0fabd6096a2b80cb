"""Overview of an agent: what it does, what comes next, what went wrong, and its timeline."""

from __future__ import annotations

from collections.abc import Iterator

import streamlit as st

from roost.core.agents.agent import Agent
from roost.core.monitoring.health import Inspection
from roost.core.schedules.schedule import Schedule
from roost.ui.agents import timeline_plot, words
from roost.ui.agents.facts import Fact, facts
from roost.ui.design.components import moment
from roost.ui.shell import navigation
from roost.ui.shell.navigation import Route
from roost.ui.shell.visit import Visit
from roost.ui.table.table import Cell

MOST_SCHEDULES = 200
"""Schedules among which the next time is looked for."""
MOST_MEETINGS = 3


def draw(visit: Visit, seen: Inspection) -> None:
    schedules = visit.service.schedules.list(visit.user, agent=seen.agent.agent_id, limit=MOST_SCHEDULES)
    unread = visit.service.mail.unread_count(visit.user, f"agent:{seen.agent.agent_id}")
    now, about = st.columns(2)
    with now:
        st.html('<h2 class="roost-part">Now</h2>')
        facts("now", "Now", [*_work(seen.agent, unread), *_next(seen.agent, schedules)])
    with about:
        st.html('<h2 class="roost-part">About</h2>')
        facts("about", "About", _about(seen))
    st.html('<h2 class="roost-part">Timeline</h2>')
    timeline_plot.draw(visit, seen)


def _work(agent: Agent, unread: int) -> Iterator[Fact]:
    """Yield what it does, what waits, and what went wrong."""
    own = agent.agent_id
    task = agent.working_on
    is_task = task is not None and task.kind == "task"
    href = words.agent_url(own, tab="tasks", task=task.envelope_id) if task is not None and is_task else ""
    yield "Working on", Cell(words.work(agent), href or words.agent_url(own, tab="inbox"))
    waiting = agent.queue_depth - len(agent.current_tasks)
    yield "Waiting in its inbox", Cell(f"{max(waiting, 0):,}", words.agent_url(own, tab="inbox"))
    yield "Mail", Cell(f"{unread:,} unread", navigation.url(Route.MAIL, box=f"agent:{own}"))
    if agent.error_count:
        times = f"{agent.error_count:,} time{'' if agent.error_count == 1 else 's'} since its last success"
        yield "Failed", Cell(times, tone="bad")
    yield "Last error", words.error_cell(agent.last_error)


def _next(agent: Agent, schedules: list[Schedule]) -> Iterator[Fact]:
    """Yield what wakes it, what woke it, and its next task by schedule."""
    yield "Next wake", words.next_wake(agent)
    yield "Last woken by", agent.wake_reason or ""
    coming = [(one.next, one) for one in schedules if one.next is not None and not one.paused]
    if coming:
        time, schedule = min(coming, key=lambda one: one[0])
        label = f"{moment(time)}: {words.short(schedule.prompt)}"
        yield "Next by schedule", Cell(label, words.agent_url(agent.agent_id, tab="schedules"))


def _about(seen: Inspection) -> Iterator[Fact]:
    agent, config = seen.agent, seen.agent.config
    for meeting in seen.meetings[:MOST_MEETINGS]:
        label = f"{words.short(meeting.topic)} ({meeting.phase})"
        yield "Meeting", Cell(label, navigation.url(Route.MEETINGS, meeting=meeting.meeting_id))
    settings = words.agent_url(agent.agent_id, tab="settings")
    tasks = f"{config.max_concurrent_tasks:,} task{'' if config.max_concurrent_tasks == 1 else 's'} at once"
    yield "Profile", Cell(f"{config.profile or words.DEFAULT}, {tasks}", settings)
    yield "Receives", Cell(words.short(", ".join(one.pattern for one in config.subscriptions)), settings)
    yield "Notes", Cell(f"{seen.memories:,}" if seen.memories else "", words.agent_url(agent.agent_id, tab="memory"))
    yield "Runs", Cell("All runs", navigation.url(Route.RUNS, agent=agent.agent_id))
    yield "Last active", moment(agent.last_active)
    yield "Created", moment(agent.created)
