"""State of an agent in one line, and the buttons that act on it."""

from __future__ import annotations

from contextlib import suppress
from html import escape

import streamlit as st

from roost.core.agents.agent import Agent, State
from roost.core.monitoring.health import Inspection
from roost.errors import NotFound
from roost.service import AgentService
from roost.ui import dialogs as open_dialogs
from roost.ui.agents import words
from roost.ui.agents.forms import dialog_form, mail_form, schedule_form, sleep_form, task_form
from roost.ui.callbacks import once, uninterrupted
from roost.ui.shell import actions, navigation
from roost.ui.shell.navigation import Route
from roost.ui.shell.visit import Visit
from roost.ui.text import plain

DELETE = "Delete this agent"
_TALK = "talk_to_open"


def draw(visit: Visit, seen: Inspection) -> None:
    agent = seen.agent
    _line(agent, str(seen.health))
    _open_talk()
    with st.container(horizontal=True, key="agent_actions"):
        _form_buttons(visit, agent)
        _state_buttons(visit, agent)
        _dialog_button("Delete", "agent_delete", DELETE, agent)


def _line(agent: Agent, health: str) -> None:
    """Draw the state by colour and word, what wakes it or what it does, and its description."""
    cell = words.state_cell(agent)
    doing = words.work(agent) or (f"until {words.next_wake(agent)}" if agent.state is State.SLEEPING else "")
    if health in ("failing", "stuck", "profile_missing"):
        doing = " · ".join(filter(None, (health.replace("_", " "), doing)))
    tone = f'<span class="roost-tone" data-tone="{cell.tone}">{escape(cell.text)}</span>'
    about = f"<p>{escape(agent.config.description)}</p>" if agent.config.description else ""
    st.html(f'<div class="roost-agent-line" role="status">{tone} <span>{escape(doing)}</span>{about}</div>')


def _form_buttons(visit: Visit, agent: Agent) -> None:
    """Draw the buttons that give the agent something; all but the first open a form."""
    key, arguments = f"agent_talk_{agent.agent_id}", (visit.service, visit.user, agent.agent_id)
    st.button("Talk", key=key, type="primary", on_click=once(_talk), args=arguments)
    for label, form in (("Give a task", task_form), ("Send mail", mail_form), ("Schedule", schedule_form)):
        _dialog_button(label, f"open_{form.KEY}", form.NAME, agent)


def _dialog_button(label: str, key: str, name: str, agent: Agent) -> None:
    """Draw a button that opens a dialog. Its key names the agent, so that a late click opens none for another one."""
    agent_id = agent.agent_id
    st.button(label, key=f"{key}_{agent_id}", on_click=dialog_form.show, args=(name, agent_id))


def _state_buttons(visit: Visit, agent: Agent) -> None:
    """Draw a button for each move that the agent can make."""
    if agent.state is State.STOPPED:
        _button(visit, agent, "start", "Start", "Started.")
    else:
        slept = agent.state is State.SLEEPING
        if slept:
            _button(visit, agent, "wake", "Wake", "Woken.")
        label = "Change sleep" if slept else "Sleep"
        _dialog_button(label, "open_sleep", sleep_form.NAME, agent)
        _button(visit, agent, "stop", "Stop", "Stopped. Its inbox is kept.")
    if agent.paused:
        _button(visit, agent, "resume", "Resume", "Resumed.")
    else:
        _button(visit, agent, "pause", "Pause", "Paused. It starts nothing new.")


def _button(visit: Visit, agent: Agent, action: str, label: str, done: str) -> None:
    method = getattr(visit.service.agents, action)
    arguments = (method, visit.user, agent.agent_id)
    key = f"agent_{action}_{agent.agent_id}"
    st.button(label, key=key, on_click=actions.act, args=arguments, kwargs={"done": done})


@uninterrupted
def _talk(service: AgentService, user: str, agent_id: str) -> None:
    def start() -> None:
        st.session_state[_TALK] = service.create_talk_session(user, agent=agent_id)

    actions.act(start)


def _open_talk() -> None:
    if talk_id := st.session_state.pop(_TALK, None):
        navigation.go(Route.TALKS, talk=talk_id)


def dialogs(visit: Visit, seen: Inspection) -> None:
    """Draw the open form in each run of the page until it is done or dismissed."""
    agent = seen.agent
    for form in (task_form, mail_form, sleep_form):
        if open_dialogs.shown(form.NAME) == agent.agent_id:
            form.dialog(visit, agent)
    schedule_form.dialogs(visit, agent)
    if open_dialogs.shown(DELETE) == agent.agent_id:
        _delete(visit, agent)


@open_dialogs.dialog("Delete this agent?")
def _delete(visit: Visit, agent: Agent) -> None:
    st.markdown(
        f"**{plain(agent.agent_id)}** will be deleted with its tasks, schedules, mail, talks, runs and memories."
        " This can't be undone."
    )
    dialog_form.problem()
    with st.container(horizontal=True):
        arguments = (visit.service, visit.user, agent.agent_id)
        st.button("Delete", key=dialog_form.key("delete_really"), on_click=_remove, args=arguments)
        st.button("Cancel", key=dialog_form.key("delete_not"), on_click=open_dialogs.close)


@uninterrupted
def _remove(service: AgentService, user: str, agent_id: str) -> None:
    def delete() -> None:
        with suppress(NotFound):  # deleted elsewhere
            service.agents.delete(user, agent_id)
        st.query_params.clear()

    dialog_form.submit(delete, f"Deleted {agent_id}.")
