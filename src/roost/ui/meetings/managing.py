"""Actions around a meeting: answer an invitation, join, invite, give the floor, remove, leave, end and cancel."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from roost.ui.callbacks import once, uninterrupted
from roost.ui.meetings import people
from roost.ui.meetings.opened import OpenMeeting, clear
from roost.ui.shell import actions, navigation
from roost.ui.text import plain


def answers(meeting: OpenMeeting) -> None:
    """Draw the buttons of one who is invited, or could join."""
    meetings = meeting.visit.service.meetings
    if meeting.may("decline"):
        with st.container(horizontal=True, key="invited"):
            who = "You are" if meeting.by is None else f"{meeting.name(meeting.view.seen_by)} is"
            st.markdown(f"{plain(who)} invited.")
            _button("Accept", meeting, meetings.join, is_first=True)
            _button("Decline", meeting, meetings.decline)
    elif meeting.may("join"):
        _button("Join again", meeting, meetings.join, is_first=True)
    elif all(view.seen_by != meeting.address for view in meeting.views) and not meeting.view.is_over:
        with st.container(horizontal=True, key="invited"):
            st.markdown("You see this meeting through your agents.")
            st.button("Join it yourself", key="join_self", type="primary", on_click=_join_self, args=(meeting,))


def draw(meeting: OpenMeeting) -> None:
    """Draw what can be done with the meeting and its participants."""
    if meeting.view.status != "in" or meeting.view.is_over:
        return
    with st.expander("Manage"):
        _invite(meeting)
        _others(meeting)
        _going(meeting)


@uninterrupted
def _join_self(meeting: OpenMeeting) -> None:
    navigation.show(meeting=meeting.meeting_id)
    actions.act(meeting.visit.service.meetings.join, meeting.user, meeting.meeting_id)


def _button(
    label: str, meeting: OpenMeeting, call: Callable[..., object], *args: object, is_first: bool = False
) -> None:
    st.button(
        label,
        key=f"meeting_{label}",
        type="primary" if is_first else "secondary",
        on_click=once(meeting.act),
        args=(call, *args),
    )


def _invite(meeting: OpenMeeting) -> None:
    key = meeting.key("invite")
    known = {one.address for one in meeting.view.participants if one.status in ("in", "invited")}
    options = [one for one in people.options(meeting.visit) if one not in known]

    @uninterrupted
    def invited() -> None:
        who = st.session_state[key]
        if who and meeting.attempt(meeting.visit.service.meetings.invite, people.address(who), done="Invited."):
            clear()

    people.one("Invite", options, meeting.visit, key=key, placeholder="An agent, or an address")
    meeting.button("Invite", "invite", invited)


def _others(meeting: OpenMeeting) -> None:
    """Draw what the chair and the moderator may do with another participant."""
    others, key, meetings = meeting.others(), meeting.key("other"), meeting.visit.service.meetings
    if not others or not (meeting.may("kick") or meeting.may("grant")):
        return
    chosen = st.session_state.get(key)
    st.session_state[key] = chosen if chosen in others else others[0]  # each time: one that is set once may be lost
    st.selectbox("Participant", others, format_func=meeting.name, key=key)

    def act(method: Callable[..., object]) -> None:
        meeting.act(method, st.session_state[key])  # the one that is chosen when the button is pressed

    with st.container(horizontal=True, key="others"):
        if meeting.view.floor == "moderator":
            meeting.button("Give the floor", "grant", act, meetings.grant)
        meeting.button("Remove", "kick", act, meetings.kick)


def _going(meeting: OpenMeeting) -> None:
    """Draw the ways out: leave, end with minutes, or cancel before the start."""
    words, meetings = meeting.key("words"), meeting.visit.service.meetings
    is_calling = meeting.view.phase == "calling"
    st.text_area("Reason" if is_calling else "Minutes, or the reason for leaving", key=words, height=80)

    def call(method: Callable[..., object]) -> Callable[[], None]:
        @uninterrupted
        def gone() -> None:
            if meeting.attempt(method, str(st.session_state[words])):
                clear()

        return gone

    with st.container(horizontal=True, key="going"):
        meeting.button("Leave", "leave", call(meetings.leave))
        if is_calling:
            meeting.button("Cancel", "cancel", call(meetings.cancel))
        else:
            meeting.button("End meeting", "end", call(meetings.end))
