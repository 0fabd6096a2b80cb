"""Form that creates or changes a schedule of an agent."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import streamlit as st

from roost.core.agents.agent import Agent
from roost.core.schedules.cron import Cron
from roost.core.schedules.rules import Every, MissedPolicy, Overlap, Rule
from roost.core.schedules.schedule import Schedule
from roost.core.values.priority import Priority
from roost.errors import Invalid, NotFound
from roost.ui import dialogs as open_dialogs
from roost.ui.agents.forms import dialog_form
from roost.ui.agents.forms.dialog_form import key
from roost.ui.agents.forms.durations import duration, formatted
from roost.ui.agents.forms.task_form import PRIORITIES
from roost.ui.design.components import browser_zone
from roost.ui.shell.visit import Visit

NAME, KEY = "Schedule", "schedule"
CHANGE = "Change this schedule"
CRON, EVERY, ONCE = "cron", "every", "at"
WHEN = {CRON: "By cron", EVERY: "Repeatedly", ONCE: "Once"}
OVERLAPS = {
    Overlap.SKIP: "Skip this one",
    Overlap.QUEUE_ONE: "Queue one",
    Overlap.QUEUE_ALL: "Queue all",
    Overlap.REPLACE: "Replace it",
}
MISSED = {MissedPolicy.SKIP: "Run none", MissedPolicy.ONCE: "Run one", MissedPolicy.ALL: "Run all"}


def dialogs(visit: Visit, agent: Agent) -> None:
    """Draw the open form, for a new schedule of the agent or for one of its schedules."""
    if open_dialogs.shown(NAME) == agent.agent_id:
        _create(visit, agent)
    elif (schedule_id := open_dialogs.shown(CHANGE)) is not None:
        try:
            found = visit.service.schedules.get(visit.user, schedule_id)
        except NotFound:
            return open_dialogs.close()  # deleted elsewhere
        if found.agent_id == agent.agent_id:
            _change(visit, found)
    return None


@open_dialogs.dialog(NAME)
def _create(visit: Visit, agent: Agent) -> None:
    dialog_form.problem()
    with st.form(key("schedule_form"), border=False, enter_to_submit=False):
        st.text_input("Name", key=key("schedule_name"), placeholder="Optional, such as morning")
        _fields(None)
        dialog_form.buttons("Schedule", "schedule_really", lambda: _made(visit, agent), "The schedule is set.")


@open_dialogs.dialog(CHANGE)
def _change(visit: Visit, schedule: Schedule) -> None:
    dialog_form.problem()
    with st.form(key("schedule_form"), border=False, enter_to_submit=False):
        _fields(schedule)
        dialog_form.buttons("Save", "schedule_save", lambda: _changed(visit, schedule), "The schedule is changed.")


def _fields(schedule: Schedule | None) -> None:
    rule = schedule.rule if schedule is not None else None
    priority = schedule.priority if schedule is not None else Priority.NORMAL
    st.text_area("Task", schedule.prompt if schedule is not None else "", key=key("schedule_prompt"), height=100)
    st.radio(
        "When", list(WHEN), _kind(rule), format_func=lambda one: WHEN[one], key=key("schedule_when"), horizontal=True
    )
    _times(rule)
    st.selectbox("Priority", PRIORITIES, PRIORITIES.index(priority), key=key("schedule_priority"))
    overlaps, missed = list(OVERLAPS), list(MISSED)
    st.selectbox(
        "If the task before is not done",
        overlaps,
        overlaps.index(schedule.overlap) if schedule is not None else 0,
        format_func=lambda one: OVERLAPS[one],
        key=key("schedule_overlap"),
    )
    st.selectbox(
        "If it was missed, as while Roost did not run",
        missed,
        missed.index(schedule.missed if schedule is not None else MissedPolicy.ONCE),
        format_func=lambda one: MISSED[one],
        key=key("schedule_missed"),
    )


def _times(rule: Rule | None) -> None:
    zone = browser_zone()
    cron = rule if isinstance(rule, Cron) else Cron("", str(zone))
    every = formatted(rule.seconds) if isinstance(rule, Every) else ""
    once = rule.time if rule is not None and not isinstance(rule, Cron | Every) else None
    with st.container(horizontal=True):
        help_text = "Minute, hour, day, month, weekday: 0 9 * * 1-5 is nine o'clock on working days"
        st.text_input("Cron", cron.expression, key=key("schedule_cron"), placeholder="0 9 * * 1-5", help=help_text)
        st.text_input("Time zone", cron.zone, key=key("schedule_zone"))
    with st.container(horizontal=True):
        st.text_input("Every", every, key=key("schedule_every"), placeholder="30m, 2h, 1d")
        at = None if once is None else datetime.fromtimestamp(once, zone).replace(tzinfo=None)
        st.datetime_input("Once at", at, key=key("schedule_at"), step=300)


def _kind(rule: Rule | None) -> int:
    return 0 if rule is None or isinstance(rule, Cron) else 1 if isinstance(rule, Every) else 2


def _time_of_form() -> dict[str, Any]:
    """Return the chosen kind of time as arguments of the service."""
    when = dialog_form.text("schedule_when")
    if when == CRON:
        return {"cron": dialog_form.text("schedule_cron"), "zone": dialog_form.text("schedule_zone") or "UTC"}
    if when == EVERY:
        return {"every": duration(dialog_form.text("schedule_every"), "the time between two runs")}
    at = dialog_form.value("schedule_at")
    if at is None:
        raise Invalid("choose the time in “Once at”")
    return {"at": at.replace(tzinfo=browser_zone()).astimezone(UTC)}


def _shared() -> dict[str, Any]:
    return {name: str(dialog_form.value(f"schedule_{name}")) for name in ("priority", "overlap", "missed")}


def _made(visit: Visit, agent: Agent) -> None:
    visit.service.schedules.create(
        visit.user,
        agent.agent_id,
        dialog_form.text("schedule_prompt"),
        name=dialog_form.text("schedule_name") or None,
        **_time_of_form(),
        **_shared(),
    )


def _changed(visit: Visit, schedule: Schedule) -> None:
    """Change a schedule; its time only if it differs, since a new time counts from now."""
    time = _time_of_form()
    if _same(schedule.rule, time):
        time = {}
    prompt = dialog_form.text("schedule_prompt")
    visit.service.schedules.change(visit.user, schedule.schedule_id, prompt=prompt, **time, **_shared())


def _same(rule: Rule, time: dict[str, Any]) -> bool:
    if isinstance(rule, Cron):
        return time == {"cron": rule.expression, "zone": rule.zone}
    if isinstance(rule, Every):
        return time == {"every": rule.seconds}
    return "at" in time and bool(time["at"].timestamp() == rule.time)
