"""Form to speak in a meeting, and the buttons of the floor."""

from __future__ import annotations

import streamlit as st

from roost.ui.callbacks import once, uninterrupted
from roost.ui.meetings.opened import OpenMeeting, clear
from roost.ui.text import plain

WITH_HANDS = ("raise_hand", "moderator")
"""Floor rules under which hands are raised."""


def draw(meeting: OpenMeeting) -> None:
    """Draw the form; what is typed can be sent as soon as one has the floor."""
    if meeting.view.status != "in" or meeting.view.is_over:
        return
    text, to, hand = (meeting.key(name) for name in ("text", "to", "hand"))
    others = meeting.others(present=True)
    _keep_known(to, others)

    @uninterrupted
    def said() -> None:
        words, mentioned = str(st.session_state[text]), list(st.session_state[to])
        wants_more = bool(st.session_state.get(hand))
        if words.strip() and meeting.attempt(meeting.visit.service.meetings.say, words, to=mentioned, hand=wants_more):
            clear()

    with st.container(key="speak"), st.form(meeting.key("speaking"), border=False):
        label = "Message" if meeting.by is None else f"Message of {meeting.name(meeting.view.seen_by)}"
        st.text_area(label, key=text, height=80, placeholder="Enter sends, Shift+Enter begins a new line")
        with st.container(horizontal=True, vertical_alignment="bottom", key="speak_row"):
            st.multiselect("Mention", others, format_func=meeting.name, key=to, placeholder="Nobody in particular")
            st.form_submit_button("Send", type="primary", on_click=once(said), disabled=not meeting.may("say"))
        if meeting.view.floor in WITH_HANDS:
            st.checkbox("Raise my hand again afterwards", key=hand)
    _floor(meeting)


def _keep_known(key: str, others: list[str]) -> None:
    """Forget mentioned participants that have left: the input offers only present ones."""
    if any(one not in others for one in st.session_state.get(key, ())):
        st.session_state[key] = [one for one in st.session_state[key] if one in others]


def _floor(meeting: OpenMeeting) -> None:
    """Draw the buttons that request or pass the floor, where the rule knows them."""
    view, meetings = meeting.view, meeting.visit.service.meetings
    if view.floor not in (*WITH_HANDS, "round_robin"):
        return
    holder = view.speakers[0] if view.speakers else view.seen_by
    passing = "Pass my turn" if holder == view.seen_by else f"Skip the turn of {plain(meeting.name(holder))}"
    with st.container(horizontal=True, key="floor"):
        if view.floor in WITH_HANDS:
            meeting.button("Raise hand", "raise_hand", meeting.act, meetings.raise_hand, icon=":material/front_hand:")
        meeting.button(passing, "pass_turn", meeting.act, meetings.pass_turn, holder)
