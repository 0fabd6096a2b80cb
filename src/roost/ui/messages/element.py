"""Element of the message list for Streamlit's pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from roost.ui.callbacks import uninterrupted
from roost.ui.elements import ANSWERS, element

KEY = "message_list"


_mount = element("roost_message_list", __file__, "list", ANSWERS)


def draw(data: Mapping[str, object], act: Callable[[str, int, str], None], set_stream: Callable[[bool], None]) -> None:
    """Draw the list.

    `act` is called with the name of an action, the number of its message and its text, `set_stream` with whether the
    live stream can be had. The list asks for a new run of the page by a trigger that needs no answer.
    """

    @uninterrupted
    def acted() -> None:
        action = st.session_state[KEY].action
        if isinstance(action, dict):
            act(str(action.get("name", "")), int(action.get("seq") or 0), str(action.get("text") or ""))

    _mount(
        key=KEY,
        data=dict(data),
        on_action_change=acted,
        on_stream_change=lambda: set_stream(st.session_state[KEY].stream == "live"),
        on_refresh_change=lambda: None,
    )
