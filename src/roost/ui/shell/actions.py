"""Actions of buttons: one call of the service each, and what to tell the user about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from roost.errors import RoostError, public
from roost.ui.callbacks import uninterrupted
from roost.ui.design import components
from roost.ui.text import plain, sentence

_DONE, _PROBLEM = "action_done", "action_problem"


def act(call: Callable[..., object], *args: Any, done: str = "", **options: Any) -> None:
    """Call a method of the service; its error is shown where `notices` draws them, or `done` if it succeeds."""
    attempt(call, *args, done=done, **options)


@uninterrupted
def attempt(call: Callable[..., object], *args: Any, done: str = "", **options: Any) -> bool:
    """Call a method as `act` does; return whether it succeeded."""
    try:
        call(*args, **options)
    except RoostError as error:
        report(error)
        return False
    succeed(done)
    return True


@uninterrupted
def each(call: Callable[[str], object], chosen: Sequence[str], done: Callable[[int], str]) -> bool:
    """Call a method for each chosen row; say with how many it was done, and how many were refused and why.

    A row that is refused does not stop the others. Return whether none was.
    """
    refused: list[RoostError] = []
    for row_id in chosen:
        try:
            call(row_id)
        except RoostError as error:
            refused.append(error)
    said = done(len(chosen) - len(refused))
    if not refused:
        succeed(said)
        return True
    more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
    report(f"{said} {len(refused)} refused: {public(refused[0])}{more}")
    return False


def succeed(done: str) -> None:
    """Tell with the next run of the page what was done, as plain text."""
    st.session_state.pop(_PROBLEM, None)
    st.session_state[_DONE] = done


def report(problem: object) -> None:
    """Show a problem with the next run of the page."""
    st.session_state.pop(_DONE, None)
    st.session_state[_PROBLEM] = sentence(problem)


def notices() -> None:
    """Draw what became of the last action: a problem stays until the next one."""
    if done := st.session_state.pop(_DONE, ""):
        st.toast(plain(done))
    if problem := st.session_state.get(_PROBLEM):
        components.notice(problem)
