"""Dialogs of the page. At most one is open: Streamlit draws no second one."""

from __future__ import annotations

import streamlit as st

from roost.ui.callbacks import uninterrupted

_OPEN = "dialog"


@uninterrupted
def show(name: str, subject: str = "") -> None:
    """Open a dialog in the next run of the page, in place of any other; `subject` is what it is about."""
    st.session_state[_OPEN] = (name, subject)


def shown(name: str) -> str | None:
    """Return what a dialog is about; None if it is not open."""
    opened, subject = st.session_state.get(_OPEN, ("", ""))
    return str(subject) if opened == name else None


@uninterrupted
def close() -> None:
    st.session_state.pop(_OPEN, None)
