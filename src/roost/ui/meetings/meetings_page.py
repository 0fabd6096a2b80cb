"""Meetings of the user and of their agents: a list with filters, one meeting, or the form that calls one."""

from __future__ import annotations

import streamlit as st

from roost.core.meetings.view.shown import MeetingOverview
from roost.ui.callbacks import uninterrupted
from roost.ui.design.components import moment
from roost.ui.meetings import call_form, meeting_page, people, status
from roost.ui.meetings.names import listed, short
from roost.ui.shell import frame, live, navigation, url_choice
from roost.ui.shell.navigation import Route
from roost.ui.shell.visit import Visit
from roost.ui.table import table
from roost.ui.table.table import Cell, Column, Row

SHOWN = 50
COLUMNS = [
    Column("Topic", "long"),
    Column("Phase"),
    Column("Participants", "long"),
    Column("Floor"),
    Column("Messages", "number"),
    Column("Game"),
    Column("Called"),
]
_WHO = "filter_participant"


def page(visit: Visit) -> None:
    if meeting_id := navigation.asked("meeting"):
        meeting_page.draw(visit, meeting_id)
    elif navigation.asked("call"):
        call_form.draw(visit)
    else:
        frame.draw(visit, Route.MEETINGS, actions=_call)
        live.draw(visit, lambda: _list(visit))


def _call() -> None:
    st.button("Call a meeting", key="call_meeting", type="primary", icon=":material/add:", on_click=_open_form)


def _open_form() -> None:
    navigation.show(call="new")


def _list(visit: Visit) -> None:
    _filters(visit)
    phase, who, before = (navigation.asked(name) for name in ("phase", "participant", "before"))
    found = visit.service.meetings.overview(
        visit.user,
        participant=people.address(who) if who else None,
        phase=phase,
        limit=SHOWN + 1,
        before=before,
    )
    empty = "No meetings match." if phase or who or before else "No meetings yet: call one."
    rows = [_row(one, visit.user) for one in found[:SHOWN]]
    table.draw("meetings", "Meetings", COLUMNS, rows, empty=empty)
    chosen = {name: value for name, value in (("phase", phase), ("participant", who)) if value}
    with st.container(horizontal=True, key="pages"):
        if before:
            navigation.link(Route.MEETINGS, "Newest", icon=False, **chosen)
        if len(found) > SHOWN:
            navigation.link(Route.MEETINGS, "Older", icon=False, **chosen, before=found[SHOWN - 1].meeting_id)


def _filters(visit: Visit) -> None:
    who = navigation.asked("participant")
    address = people.address(who) if who else None
    offered = people.options(visit)
    with st.container(horizontal=True, vertical_alignment="bottom", key="filters"):
        url_choice.segments("phase", "Phase", {"": "All", **{name: word for name, (word, _) in status.PHASES.items()}})
        st.session_state[_WHO] = address  # each time: a value that was set once may be lost in the browser
        new = [address] if address and address not in offered else []
        people.one("Participant", offered + new, visit, key=_WHO, placeholder="Anyone", changed=_filter)


@uninterrupted
def _filter() -> None:
    """Put the participant into the URL; the list begins at its newest meeting."""
    who = st.session_state[_WHO]
    url_choice.show(participant=people.address(who) if who else None, before=None)


def _row(one: MeetingOverview, user: str) -> Row:
    summary, view = one.summary, one.view
    word, tone = status.PHASES[summary.phase]
    link = Cell(summary.topic, navigation.url(Route.MEETINGS, meeting=one.meeting_id))
    called = moment(summary.called)
    if view is None:
        return Row(one.meeting_id, (link, Cell(word, tone=tone), "", "", "", "", called))
    people_in = [attendee.address for attendee in view.participants if attendee.status in ("in", "invited")]
    everyone = ", ".join(
        f"{short(attendee.address, user)}: {status.STATUSES[attendee.status][0].lower()}"
        for attendee in view.participants
    )
    return Row(
        one.meeting_id,
        (
            link,
            Cell(word, tone=tone),
            Cell(listed(people_in, user), title=everyone),
            status.floor(view, user),
            str(view.said),
            view.game or "",
            called,
        ),
    )
