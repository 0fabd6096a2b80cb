"""Form that sends mail to an agent."""

from __future__ import annotations

import streamlit as st

from roost.core.agents.agent import Agent
from roost.core.values.priority import Priority
from roost.ui import dialogs
from roost.ui.agents.forms import dialog_form
from roost.ui.agents.forms.dialog_form import key
from roost.ui.agents.forms.task_form import PRIORITIES
from roost.ui.shell.visit import Visit

NAME, KEY = "Send mail", "mail"


@dialogs.dialog(NAME)
def dialog(visit: Visit, agent: Agent) -> None:
    dialog_form.problem()
    with st.form(key("mail_form"), border=False, enter_to_submit=False):
        st.text_input("Subject", key=key("mail_subject"))
        st.text_area("Text", key=key("mail_body"), height=140)
        st.selectbox("Priority", PRIORITIES, index=PRIORITIES.index(Priority.NORMAL), key=key("mail_priority"))
        wakes = agent.config.wake_on_priority
        every = f"{agent.config.check_mail_interval:g}"
        st.caption(f"Mail of {wakes} priority or above wakes it at once; it handles other mail every {every} seconds.")
        dialog_form.buttons("Send", "mail_send", lambda: _send(visit, agent), "The mail is sent.")


def _send(visit: Visit, agent: Agent) -> None:
    visit.service.mail.send(
        visit.user,
        f"agent:{agent.agent_id}",
        dialog_form.text("mail_subject"),
        dialog_form.text("mail_body"),
        priority=dialog_form.text("mail_priority"),
    )
