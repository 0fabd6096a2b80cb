"""The address of the page, which names the talk that is open: so it can be kept, reloaded and gone back to."""

from __future__ import annotations

import streamlit as st


def opened() -> str | None:
    """The talk that the address names."""
    return st.query_params.get("talk")


def start_new() -> None:
    """Leave the open talk; the next one begins with its first message."""
    show(None)
    st.session_state.pop("notice", None)


def open_talk(talk_id: str) -> None:
    show(talk_id)
    st.session_state.pop("notice", None)


def show(talk_id: str | None) -> None:
    if talk_id != opened():
        st.query_params.from_dict({"talk": talk_id} if talk_id else {})
