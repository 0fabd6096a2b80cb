"""Participants of a meeting: status, role, and how the view of each one stands."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import streamlit as st

from roost.core.meetings.view.shown import Attendee
from roost.ui.callbacks import uninterrupted
from roost.ui.meetings import status
from roost.ui.meetings.names import readable
from roost.ui.meetings.opened import OpenMeeting
from roost.ui.shell import navigation
from roost.ui.shell.navigation import Route
from roost.ui.table import table
from roost.ui.table.table import Cell, Column, Row

COLUMNS = [Column("Participant", "long"), Column("Status"), Column("View", "long")]
_EYES = "seen_by"


def draw(meeting: OpenMeeting) -> None:
    st.header("Participants", anchor=False)
    rows = [_row(one, meeting) for one in meeting.view.participants]
    table.draw("participants", "Participants", COLUMNS, rows, empty="Nobody has been invited.")
    if meeting.view.hands:
        hands = ", ".join(meeting.name(one) for one in meeting.view.hands)
        st.html(f'<p class="roost-hands">Raised hands: <strong>{escape(hands)}</strong></p>')
    if len(meeting.views) > 1:
        _eyes(meeting)


def _row(one: Attendee, meeting: OpenMeeting) -> Row:
    word, tone = status.STATUSES[one.status]
    name = meeting.name(one.address)
    is_own_agent = one.address.startswith(f"agent:{meeting.user}/")
    href = navigation.url(Route.AGENTS, agent=name) if is_own_agent else ""
    roles = ", ".join(_roles(one, meeting))
    text = f"{name} ({roles})" if roles else name
    state = Cell(word, tone=tone, title=one.reason)
    return Row(one.address, (Cell(text, href), state, _view(one, meeting)))


def _roles(one: Attendee, meeting: OpenMeeting) -> Iterator[str]:
    view = meeting.view
    if one.address == view.chair:
        yield "chair"
    if one.address == view.moderator:
        yield "moderator"
    if one.required:
        yield "required"
    if one.reason:
        yield readable(one.reason, meeting.user)
    if mark := status.mark(view, one.address):
        yield mark


def _view(one: Attendee, meeting: OpenMeeting) -> Cell | str:
    own = next((view for view in meeting.views if view.seen_by == one.address), None)
    if own is None:
        return Cell("Not known here", title="Each participant keeps its own view; that of another user cannot be read.")
    standing = status.standing(own, meeting.views)
    return Cell(standing, tone="good" if standing.endswith("up to date") else "waiting")


def _eyes(meeting: OpenMeeting) -> None:
    """Draw the choice of the participant through whose eyes the meeting is seen, and who acts."""
    options = [view.seen_by for view in meeting.views]
    st.session_state[_EYES] = meeting.view.seen_by  # each time: a value that was set once may be lost in the browser
    st.selectbox(
        "See and act as",
        options,
        format_func=meeting.name,
        key=_EYES,
        on_change=_look_as,
        args=(meeting.meeting_id, meeting.address),
    )


@uninterrupted
def _look_as(meeting_id: str, own: str) -> None:
    chosen = str(st.session_state[_EYES])
    navigation.show(meeting=meeting_id, seen_by="" if chosen == own else chosen)
