"""Page of one meeting: its state, game, transcript, participants and minutes."""

from __future__ import annotations

from functools import partial
from html import escape

import streamlit as st

from roost.errors import Forbidden, NotFound
from roost.ui.design import components
from roost.ui.design.components import moment
from roost.ui.meetings import game, managing, minutes, opened, participants, people, speaking, status, transcript
from roost.ui.meetings.opened import OpenMeeting
from roost.ui.shell import actions, frame, live
from roost.ui.shell.navigation import Route
from roost.ui.shell.visit import Visit


def draw(visit: Visit, meeting_id: str) -> None:
    """Draw a meeting; one of which only the minutes are kept shows these."""
    found: OpenMeeting | None = None
    try:
        found = opened.find(visit, meeting_id)
    except NotFound:
        part = partial(_unknown, visit, meeting_id)
    except Forbidden:
        part = partial(minutes.archived, visit, meeting_id)
    else:
        part = partial(_meeting, found)
    frame.draw(visit, Route.MEETINGS, found.view.topic if found else "Meeting")
    people.back()
    live.draw(visit, part, meeting=meeting_id if found else None)  # it is followed from the moment one is in it


def _unknown(visit: Visit, meeting_id: str) -> None:
    components.notice("You are not in this meeting, or it does not exist.")
    st.caption("Anyone who knows the URL of an open meeting may join it.")
    st.button("Join", key="join_open", on_click=actions.act, args=(visit.service.meetings.join, visit.user, meeting_id))


def _meeting(meeting: OpenMeeting) -> None:
    with st.container(key="meeting"):
        _state(meeting)
        managing.answers(meeting)
        if meeting.view.game:
            _with_game(meeting)
        else:
            _without_game(meeting)


def _with_game(meeting: OpenMeeting) -> None:
    left, right = st.columns([2, 3], gap="large")
    with left:
        game.draw(meeting)
    with right:
        _talk(meeting)
    left, right = st.columns([3, 2], gap="large")
    with left:
        participants.draw(meeting)
    with right:
        managing.draw(meeting)
        _details(meeting)


def _without_game(meeting: OpenMeeting) -> None:
    left, right = st.columns([5, 4], gap="large")
    with left:
        _talk(meeting)
    with right:
        participants.draw(meeting)
        managing.draw(meeting)
        _details(meeting)


def _talk(meeting: OpenMeeting) -> None:
    st.header("Transcript", anchor=False)
    transcript.draw(meeting.view, meeting.user)
    speaking.draw(meeting)
    minutes.draw(meeting)


def _state(meeting: OpenMeeting) -> None:
    """Draw the phase, and in words who has the floor."""
    word, tone = status.PHASES[meeting.view.phase]
    is_yours = meeting.may("move") or (meeting.view.floor != "free" and meeting.may("say"))
    st.html(
        '<div class="roost-meeting-state" role="status">'
        f'<span class="roost-tone" data-tone="{tone}">{word}</span>'
        f'<span data-yours="{str(is_yours).lower()}">{escape(status.sentence(meeting.view, meeting.user))}</span></div>'
    )


def _details(meeting: OpenMeeting) -> None:
    view = meeting.view
    times = (("Called", view.called), ("Began", view.began), ("Over", view.over))
    rows = [
        ("Called by", meeting.name(view.creator)),
        ("Chair", meeting.name(view.chair) if view.chair else ""),
        ("Moderator", meeting.name(view.moderator) if view.moderator else ""),
        ("Floor", status.FLOORS[view.floor][0]),
        ("Game", view.game or ""),
        *((label, moment(time) if time else "") for label, time in times),
    ]
    st.header("Details", anchor=False)
    pairs = "".join(f"<dt>{escape(label)}</dt><dd>{escape(value)}</dd>" for label, value in rows if value)
    st.html(f'<dl class="roost-details">{pairs}</dl>')
