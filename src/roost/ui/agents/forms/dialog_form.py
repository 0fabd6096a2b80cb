"""Forms in dialogs: they close when it is done, and show the problem otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from roost.errors import RoostError
from roost.ui import dialogs
from roost.ui.callbacks import uninterrupted
from roost.ui.design import components
from roost.ui.shell import actions

_PROBLEM = "form_problem"


@uninterrupted
def show(name: str, subject: str = "") -> None:
    """Open a form, without the problem of another one."""
    st.session_state.pop(_PROBLEM, None)
    dialogs.show(name, subject)


@uninterrupted
def submit(call: Callable[[], object], done: str) -> None:
    """Do what a form asks for; close its dialog and say `done`, or keep the problem for `problem`.

    The second click of a double click arrives after the first has closed the dialog: it does nothing.
    """
    if not dialogs.is_any_open():
        return
    try:
        call()
    except RoostError as error:
        st.session_state[_PROBLEM] = error
        return
    st.session_state.pop(_PROBLEM, None)
    dialogs.close()
    actions.succeed(done)


def problem() -> None:
    """Draw the problem of the form, if there is one."""
    if (error := st.session_state.get(_PROBLEM)) is not None:
        components.notice(error)


def key(name: str) -> str:
    """Return the key of a field, a button or a form. Those of another agent, or schedule, have other keys."""
    return f"{name}_{dialogs.subject()}"


def value(name: str) -> Any:
    """Return what a field holds."""
    return st.session_state.get(key(name))


def text(name: str) -> str:
    """Return the text of a field, without space around it."""
    return str(value(name) or "").strip()


def buttons(label: str, name: str, call: Callable[[], object], done: str) -> None:
    """Draw the button that submits a form."""
    st.form_submit_button(label, key=key(name), type="primary", on_click=submit, args=(call, done))
