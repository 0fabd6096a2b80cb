"""Minutes of a meeting: shown as text, and as a file."""

from __future__ import annotations

import re
from html import escape

import streamlit as st

from roost.ui.meetings.names import readable
from roost.ui.meetings.opened import OpenMeeting
from roost.ui.shell import navigation
from roost.ui.shell.visit import Visit
from roost.ui.text import plain

_UNSAFE = re.compile(r"[^\w.-]+")


def draw(meeting: OpenMeeting) -> None:
    """Draw the minutes of a meeting that is over; the words of the participant that ended it come first."""
    if not meeting.view.is_over:
        return
    st.header("Minutes", anchor=False)
    if meeting.view.minutes:
        st.html(f'<div class="roost-minutes">{escape(readable(meeting.view.minutes, meeting.user))}</div>')
    text = meeting.visit.service.meetings.minutes(meeting.user, meeting.meeting_id, seen_by=meeting.view.seen_by)
    with st.expander("All minutes"):
        _text(text)
    _file(meeting.view.topic, text)


def archived(visit: Visit, meeting_id: str) -> None:
    """Draw a meeting of which only the minutes are kept."""
    text = visit.service.meetings.minutes(visit.user, meeting_id, seen_by=navigation.asked("seen_by"))
    topic = text.partition("\n")[0].removeprefix("# ")
    st.header(plain(topic), anchor=False)
    st.caption("This meeting was over long ago: only its minutes are kept.")
    _text(text)
    _file(topic, text)


def _text(text: str) -> None:
    st.html(f'<pre class="roost-minutes">{escape(text)}</pre>')


def _file(topic: str, text: str) -> None:
    name = _UNSAFE.sub("-", topic).strip("-.")[:60] or "meeting"
    st.download_button("Download as Markdown", text, f"{name}.md", "text/markdown", key="minutes", on_click="ignore")
