"""URL of the page, which names the open talk, so that bookmarks, reload and the back button work."""

from __future__ import annotations

import secrets
from time import monotonic

import streamlit as st

from roost.ui.callbacks import uninterrupted

GRACE = 10.0
"""Seconds in which a request may come from a browser that has not received the new URL yet."""


def opened() -> str | None:
    """Return the open talk: the one that the URL names, or that was opened a moment ago."""
    talk_id, until = st.session_state.get("opening", (None, 0.0))
    return talk_id if monotonic() < until else st.query_params.get("talk")


@uninterrupted
def follow() -> None:
    """Follow the URL again: the user went back or forward."""
    st.session_state.pop("opening", None)


@uninterrupted
def start_new() -> None:
    """Close the open talk; the next one is created with its first message."""
    show(None)
    st.session_state.pop("notice", None)


@uninterrupted
def open_talk(talk_id: str) -> None:
    show(talk_id)
    st.session_state.pop("notice", None)


@uninterrupted
def open_message(talk_id: str, seq: int) -> None:
    """Open a talk at one of its messages."""
    open_talk(talk_id)
    st.session_state["focus"] = (talk_id, seq, secrets.token_hex(8))


def focus(talk_id: str | None) -> dict[str, object] | None:
    """Return the message at which the talk was opened, with an id of this opening."""
    opened, seq, mark = st.session_state.get("focus", (None, 0, ""))
    return {"id": mark, "seq": seq} if talk_id and opened == talk_id else None


def show(talk_id: str | None) -> None:
    if talk_id != opened() or talk_id != st.query_params.get("talk"):
        st.query_params.from_dict({"talk": talk_id} if talk_id else {})
        st.session_state["opening"] = (talk_id, monotonic() + GRACE)
