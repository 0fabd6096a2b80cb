"""Schedules of an agent, with their next times."""

from __future__ import annotations

from datetime import UTC, datetime

import streamlit as st

from roost.core.monitoring.health import Inspection
from roost.core.schedules import rules
from roost.core.schedules.rules import Once, Rule
from roost.core.schedules.schedule import Schedule
from roost.ui.agents import words
from roost.ui.agents.forms import dialog_form, schedule_form
from roost.ui.design.components import moment
from roost.ui.shell import actions, navigation, url_choice
from roost.ui.shell.visit import Visit
from roost.ui.text import plain

SHOWN = 25
NEXT = 3
"""Next times of each schedule that are shown."""


def draw(visit: Visit, seen: Inspection) -> None:
    after = navigation.asked("after") or ""
    agent_id = seen.agent.agent_id
    found = visit.service.schedules.list(visit.user, agent=agent_id, limit=SHOWN + 1, after=after)
    if not found:
        st.caption("No schedules. Set one above with Schedule.")
    for schedule in found[:SHOWN]:
        _schedule(visit, schedule)
    url_choice.pages("after", found[SHOWN - 1].schedule_id if len(found) > SHOWN else None)


def _schedule(visit: Visit, schedule: Schedule) -> None:
    schedule_id = schedule.schedule_id
    with st.container(key=f"schedule_{schedule_id}", border=True):
        paused = " · paused" if schedule.paused else ""
        name = "" if schedule.name == schedule_id else f"**{plain(schedule.name)}** · "
        st.markdown(f"{name}{plain(_rule(schedule.rule))}{paused}  \n{plain(words.short(schedule.prompt, 200))}")
        st.caption(_times(schedule))
        with st.container(horizontal=True):
            _buttons(visit, schedule)


def _buttons(visit: Visit, schedule: Schedule) -> None:
    service, schedule_id = visit.service.schedules, schedule.schedule_id
    action, label, done = ("resume", "Resume", "Resumed.") if schedule.paused else ("pause", "Pause", "Paused.")
    st.button(
        label,
        key=f"{action}_{schedule_id}",
        on_click=actions.act,
        args=(getattr(service, action), visit.user, schedule_id),
        kwargs={"done": done},
    )
    arguments = (schedule_form.CHANGE, schedule_id)
    st.button("Change", key=f"change_{schedule_id}", on_click=dialog_form.show, args=arguments)
    st.button(
        "Delete",
        key=f"delete_{schedule_id}",
        on_click=actions.act,
        args=(service.delete, visit.user, schedule_id),
        kwargs={"done": "Deleted. Tasks that it has posted stay."},
    )


def _rule(rule: Rule) -> str:
    return f"once, {moment(_time(rule.time))}" if isinstance(rule, Once) else rules.described(rule)


def next_times(schedule: Schedule) -> list[datetime]:
    """Return the next times of a schedule: none while it is paused."""
    times = [] if schedule.next is None or schedule.paused else [schedule.next]
    while times and len(times) < NEXT:
        # A stored time has microseconds, and the tick itself may be a little later.
        following = rules.next_after(schedule.rule, times[-1].timestamp() + 1e-5)
        if following is None:
            break
        times.append(_time(following))
    return times


def _times(schedule: Schedule) -> str:
    times = next_times(schedule)
    if times:
        return plain(f"Next: {', '.join(moment(time) for time in times)}")
    return "Paused: it gives no tasks until it is resumed." if schedule.paused else "It has ended."


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
