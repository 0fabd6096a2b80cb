"""Element of the message list for Streamlit's pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import streamlit as st

from roost.ui.callbacks import uninterrupted

KEY = "message_list"


def _file(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


_ANSWERS = (Path(__file__).parent.parent / "rendering" / "code.css").read_text(encoding="utf-8")


_mount = st.components.v2.component(
    "roost_message_list",
    html=_file("list.html"),
    css=_ANSWERS + _file("list.css"),
    js=_file("list.js"),
    isolate_styles=False,
)


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
