"""Game of a meeting: the board, whose move it is, and the input of a move."""

from __future__ import annotations

from functools import partial
from html import escape
from typing import Any

import streamlit as st

from roost.errors import Invalid
from roost.ui.callbacks import once, uninterrupted
from roost.ui.meetings import board, status
from roost.ui.meetings.opened import OpenMeeting, clear
from roost.ui.text import parsed_json, plain


def draw(meeting: OpenMeeting) -> None:
    """Draw the game; moves can be made by the one who has to move."""
    st.header("Game", anchor=False)
    if meeting.view.game == status.TICTACTOE:
        board.draw(meeting.view, partial(_take, meeting))
        _players(meeting)
    else:
        st.html(f'<pre class="roost-board-text" aria-label="Board">{escape(meeting.view.board)}</pre>')
        if not meeting.view.is_over:
            _input(meeting)


def _take(meeting: OpenMeeting, cell: int, key: str) -> None:
    meeting.act(meeting.visit.service.meetings.move, {"cell": cell}, key=key)


def _players(meeting: OpenMeeting) -> None:
    """Say who plays which mark, and the last move."""
    state, made = meeting.view.state, meeting.view.played
    playing = ", ".join(
        f"{plain(meeting.name(one))} {'play' if one == meeting.address else 'plays'} {status.mark(meeting.view, one)}"
        for one in state["players"]
    )
    last = f" Last move: {plain(meeting.name(made[-1].player))}, cell {made[-1].move['cell']}." if made else ""
    st.caption(f"{playing}.{last}")


def _input(meeting: OpenMeeting) -> None:
    key = meeting.key("move")

    @uninterrupted
    def moved() -> None:
        text = str(st.session_state[key]).strip()
        if text and meeting.attempt(meeting.visit.service.meetings.move, _value(text)):
            clear()

    with st.form(meeting.key("moving"), border=False):
        st.text_input("Your move", key=key, help="A number, a text or a JSON value, as the game takes it.")
        st.form_submit_button("Move", on_click=once(moved), disabled=not meeting.may("move"))


def _value(text: str) -> Any:
    """Return the JSON value that a text stands for, or the text itself."""
    try:
        return parsed_json(text, "this is a text")
    except Invalid:
        return text
