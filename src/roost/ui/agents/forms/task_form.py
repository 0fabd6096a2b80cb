"""Form that gives an agent a task."""

from __future__ import annotations

import streamlit as st

from roost.core.agents.agent import Agent
from roost.core.values.priority import Priority
from roost.ui import dialogs
from roost.ui.agents.forms import dialog_form
from roost.ui.agents.forms.dialog_form import key
from roost.ui.agents.forms.durations import duration
from roost.ui.shell.visit import Visit

NAME, KEY = "Give a task", "task"
PRIORITIES = [str(priority) for priority in Priority]


@dialogs.dialog(NAME)
def dialog(visit: Visit, agent: Agent) -> None:
    dialog_form.problem()
    with st.form(key("task_form"), border=False, enter_to_submit=False):
        st.text_area("Task", key=key("task_prompt"), height=140, placeholder="What the agent should do")
        st.selectbox("Priority", PRIORITIES, index=PRIORITIES.index(Priority.NORMAL), key=key("task_priority"))
        st.text_input(
            "Drop it if it has not started within", key=key("task_expiry"), placeholder="Never; or 30m, 2h, 1d"
        )
        dialog_form.buttons("Give the task", "task_send", lambda: _send(visit, agent), "The task is in its inbox.")


def _send(visit: Visit, agent: Agent) -> None:
    expiry = dialog_form.text("task_expiry")
    visit.service.tasks.send(
        visit.user,
        agent.agent_id,
        dialog_form.text("task_prompt"),
        priority=dialog_form.text("task_priority"),
        expires_in=duration(expiry, "the time to start") if expiry else None,
    )
