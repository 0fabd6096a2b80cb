"""Board of tic-tac-toe: an element of nine buttons."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from roost.core.meetings.games.tictactoe import ROWS
from roost.core.meetings.view.shown import MeetingView
from roost.ui.callbacks import uninterrupted
from roost.ui.elements import element

KEY = "board"
_RECEIVED = "received_click"


_mount = element("roost_board", __file__, "board")


def draw(view: MeetingView, play: Callable[[int, str], None]) -> None:
    """Draw the board; `play` is called with the cell that was clicked, from 1 to 9, and the key of the click.

    The browser reports a click until the page says that it was received: it may be called twice with one key.
    """

    @uninterrupted
    def clicked() -> None:
        match st.session_state[KEY].click:
            case {"cell": int(cell), "key": str(key)}:
                st.session_state[_RECEIVED] = key
                play(cell, key)

    last = view.played[-1].move.get("cell") if view.played else None
    data = {
        "cells": view.state["board"],
        "last": last,
        "row": winning_row(view.state["board"]),
        "playable": "move" in view.may,
        "received": st.session_state.get(_RECEIVED, ""),
    }
    _mount(key=KEY, data=data, on_click_change=clicked)


def winning_row(cells: list[str]) -> list[int]:
    """Return the three cells that win, or none."""
    marks = {row: {cells[cell - 1] for cell in row} for row in ROWS}
    return next((list(row) for row, found in marks.items() if len(found) == 1 and "" not in found), [])
