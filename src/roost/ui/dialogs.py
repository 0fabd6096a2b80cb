"""Dialogs of the page. At most one is open: Streamlit draws no second one."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Literal, ParamSpec

import streamlit as st

from roost.ui.callbacks import uninterrupted

P = ParamSpec("P")
_OPEN = "dialog"


@uninterrupted
def show(name: str, subject: str = "") -> None:
    """Open a dialog in the next run of the page, in place of any other; `subject` is what it is about."""
    st.session_state[_OPEN] = (name, subject)


def shown(name: str) -> str | None:
    """Return what a dialog is about; None if it is not open."""
    opened, subject = st.session_state.get(_OPEN, ("", ""))
    return str(subject) if opened == name else None


def subject() -> str:
    """Return what the open dialog is about; empty if none is open."""
    return str(st.session_state.get(_OPEN, ("", ""))[1])


def is_any_open() -> bool:
    return _OPEN in st.session_state


@uninterrupted
def close() -> None:
    st.session_state.pop(_OPEN, None)


def dialog(
    title: str, *, width: Literal["small", "medium"] = "small", on_dismiss: Callable[[], None] = close
) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Return a decorator like `st.dialog`, for dialogs that `show` has opened.

    A callback that calls `close` closes it at once. While it is open, the page is not drawn again by itself: Streamlit
    would remove the dialog until it is drawn again, with the focus and with what is typed meanwhile.
    """

    def decorate(draw: Callable[P, None]) -> Callable[P, None]:
        @wraps(draw)
        def drawn(*args: P.args, **kwargs: P.kwargs) -> None:
            if not is_any_open():
                st.rerun()
            draw(*args, **kwargs)

        return st.dialog(title, width=width, on_dismiss=on_dismiss)(drawn)

    return decorate
