"""Buttons in talks with the Guide, which build first things for the user.

The actions are those of `first_steps.STEPS`: no text of a brain or a user names another one.
"""

from __future__ import annotations

from functools import partial

import streamlit as st

from roost.core.talks.talk import Talk
from roost.demos.first_steps import STEPS, Built
from roost.errors import RoostError, public
from roost.service import AgentService
from roost.ui import page_url
from roost.ui.callbacks import uninterrupted
from roost.ui.design import components
from roost.ui.shell import navigation
from roost.ui.shell.navigation import Route
from roost.ui.sidebar.sidebar import Draft
from roost.ui.text import plain

GUIDE = "guide"
"""Brain whose talks have the buttons."""


def draw(service: AgentService, talk: Talk | None, draft: Draft, *, is_operator: bool) -> None:
    """Draw the buttons, and what was built last in this talk. Commands are for the user of the command line."""
    with st.container(key="offers"):
        if talk is None or not _is_guide(service, talk):
            return
        talk_id, built = st.session_state.get("built", ("", None))
        if built is not None and talk_id == talk.talk_session_id:
            _result(built, draft, is_operator=is_operator)
        with st.container(key="steps", horizontal=True):
            for name, step in STEPS.items():
                st.button(step.label, key=f"step_{name}", on_click=partial(_build, service, talk, name))


def _is_guide(service: AgentService, talk: Talk) -> bool:
    return talk.agent is None and any(p.name == talk.profile and p.brain == GUIDE for p in service.profiles())


@uninterrupted
def _build(service: AgentService, talk: Talk, name: str) -> None:
    st.session_state.pop("notice", None)
    st.session_state.pop("built", None)
    try:
        built = STEPS[name].build(service, talk.user_id, components.browser_zone())
    except RoostError as error:
        st.session_state["notice"] = public(error)
        return
    st.session_state["built"] = (talk.talk_session_id, built)


def _result(built: Built, draft: Draft, *, is_operator: bool) -> None:
    with st.container(key="built"):
        command = f" In a terminal: `{built.command}`." if is_operator else ""
        st.markdown(f"{built.text}{command}")
        if built.agent:
            st.button(
                f"Talk with {plain(built.agent)}",
                key="talk_with",
                type="primary",
                on_click=_talk_with,
                args=(draft, built.agent),
            )
        if built.meeting:
            navigation.link(Route.MEETINGS, "Watch the game", meeting=built.meeting)


@uninterrupted
def _talk_with(draft: Draft, agent: str) -> None:
    draft.agent = agent
    page_url.start_new()
