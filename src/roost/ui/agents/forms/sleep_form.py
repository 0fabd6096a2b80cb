"""Form that puts an agent to sleep, with all conditions that can wake it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import streamlit as st

from roost.core.agents import wake
from roost.core.agents.agent import Agent
from roost.core.values.priority import Priority
from roost.errors import Invalid
from roost.ui import dialogs
from roost.ui.agents.forms import dialog_form
from roost.ui.agents.forms.dialog_form import key
from roost.ui.agents.forms.durations import duration
from roost.ui.design.components import browser_zone
from roost.ui.shell.visit import Visit

NAME = "Sleep"
NO_MAIL = "no mail"
MAIL = {NO_MAIL: "Does not wake it", **{str(one): f"Of {one} priority or above" for one in reversed(Priority)}}
ANY, ALL = "any of these happens", "all of these have happened"


@dialogs.dialog(NAME)
def dialog(visit: Visit, agent: Agent) -> None:
    dialog_form.problem()
    default = f"mail of {agent.config.wake_on_priority} priority or above, or a click on Wake"
    with st.form(key("sleep_form"), border=False, enter_to_submit=False):
        st.caption(f"It sleeps after its current work. Leave all fields empty to let it sleep until {default}.")
        with st.container(horizontal=True):
            st.text_input("For", key=key("sleep_for"), placeholder="30m, 2h, 1d")
            st.datetime_input("Until", value=None, key=key("sleep_until"), step=300)
        st.selectbox("Mail", list(MAIL), format_func=lambda one: MAIL[one], key=key("sleep_mail"))
        st.text_input("Events", key=key("sleep_events"), placeholder="alerts.*, data_ready", help="Names or patterns")
        with st.container(horizontal=True):
            st.number_input("CPU load below (%)", 1, 100, None, key=key("sleep_cpu"))
            st.number_input("Awake agents fewer than", 1, wake.MOST_AWAKE, None, key=key("sleep_awake"))
        st.radio("Wake it when", (ANY, ALL), key=key("sleep_when"), horizontal=True)
        dialog_form.buttons("Put to sleep", "sleep_really", lambda: _sleep(visit, agent), "It sleeps after its work.")


def _sleep(visit: Visit, agent: Agent) -> None:
    now = datetime.now(UTC)
    times, others = _times(now), _others()
    if not times and not others:
        visit.service.agents.sleep(visit.user, agent.agent_id)
    elif dialog_form.value("sleep_when") == ALL:
        visit.service.agents.sleep(visit.user, agent.agent_id, wake_on=wake.all_of(*times, *others))
    else:
        visit.service.agents.sleep(visit.user, agent.agent_id, wake_on=wake.any_of(*times, *others))


def _times(now: datetime) -> list[wake.Condition]:
    found: list[wake.Condition] = []
    if length := dialog_form.text("sleep_for"):
        found.append(wake.at(now + timedelta(seconds=duration(length, "the duration"))))
    if (until := dialog_form.value("sleep_until")) is not None:
        moment = until.replace(tzinfo=browser_zone())
        if moment <= now:
            raise Invalid("the time to sleep until is in the past: choose a later one")
        found.append(wake.at(moment))
    return found


def _others() -> list[wake.Condition]:
    """Return the conditions beside times."""
    found: list[wake.Condition] = []
    if (priority := dialog_form.text("sleep_mail")) not in ("", NO_MAIL):
        found.append(wake.mail(priority))
    found += [wake.event(name) for name in re.split(r"[\s,]+", dialog_form.text("sleep_events")) if name]
    cpu, awake = dialog_form.value("sleep_cpu"), dialog_form.value("sleep_awake")
    if cpu is not None or awake is not None:
        found.append(wake.load_below(cpu=None if cpu is None else cpu / 100, awake=awake))
    return found
