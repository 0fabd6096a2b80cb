"""URL of the page, which names the open talk, so that bookmarks, reload and the back button work."""

from __future__ import annotations

import secrets
import time

import streamlit as st

LATE = 5.0
"""Seconds for which a browser may still send the URL of an empty page after its first message has begun a talk."""


def opened() -> str | None:
    """Return the talk that the URL names, or the one that has just begun on this page."""
    talk_id = st.query_params.get("talk")
    begun, at = st.session_state.get("begun", ("", 0.0))
    if talk_id is None and begun and time.monotonic() - at < LATE:
        st.query_params.from_dict({"talk": begun})
        return str(begun)
    return talk_id


def start_new() -> None:
    """Close the open talk; the next one is created with its first message."""
    st.session_state.pop("begun", None)
    show(None)
    st.session_state.pop("notice", None)


def open_talk(talk_id: str) -> None:
    show(talk_id)
    st.session_state.pop("notice", None)


def begin(talk_id: str) -> None:
    """Open a talk that a message of this page has begun."""
    open_talk(talk_id)
    st.session_state["begun"] = (talk_id, time.monotonic())


def open_message(talk_id: str, seq: int) -> None:
    """Open a talk at one of its messages."""
    open_talk(talk_id)
    st.session_state["focus"] = (talk_id, seq, secrets.token_hex(8))


def focus(talk_id: str | None) -> dict[str, object] | None:
    """Return the message at which the talk was opened, with an id of this opening."""
    opened, seq, mark = st.session_state.get("focus", (None, 0, ""))
    return {"id": mark, "seq": seq} if talk_id and opened == talk_id else None


def show(talk_id: str | None) -> None:
    if talk_id != opened():
        st.query_params.from_dict({"talk": talk_id} if talk_id else {})
