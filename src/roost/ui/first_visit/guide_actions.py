"""Buttons in talks with the Guide, which build first things for the user.

The actions are those of `first_steps.STEPS`: no text of a brain or a user names another one.
"""

from __future__ import annotations

from functools import partial

import streamlit as st

from roost.core.talks.talk import Talk
from roost.demos.first_steps import STEPS, Built, game_status
from roost.errors import RoostError, public
from roost.service import AgentService
from roost.ui import dialogs, page_url
from roost.ui.callbacks import uninterrupted
from roost.ui.design import components
from roost.ui.sidebar.sidebar import Draft
from roost.ui.text import as_sentence, plain

GAME = "Tic-tac-toe"
GUIDE = "guide"
"""Brain whose talks have the buttons."""
LOOK = 1.0
"""Seconds between two looks at a game that is being played."""


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
    _dialog(service, talk.user_id)


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
            st.button("Watch the game", key="watch_game", type="primary", on_click=_watch, args=(built.meeting,))


@uninterrupted
def _talk_with(draft: Draft, agent: str) -> None:
    draft.agent = agent
    page_url.start_new()


@uninterrupted
def _watch(meeting_id: str) -> None:
    dialogs.show(GAME, meeting_id)


def _dialog(service: AgentService, user: str) -> None:
    meeting_id = dialogs.shown(GAME)
    if meeting_id:
        _game(service, user, meeting_id)


@st.dialog(GAME, on_dismiss=dialogs.close)
def _game(service: AgentService, user: str, meeting_id: str) -> None:
    st.fragment(_board, run_every=LOOK)(service, user, meeting_id)


def _board(service: AgentService, user: str, meeting_id: str) -> None:
    try:
        status = game_status(service, user, meeting_id)
    except RoostError as error:
        st.error(as_sentence(error))
        return
    st.code(status.board or " ", language=None)
    st.markdown(as_sentence(status.text))
