"""Callbacks of widgets that run to their end.

Streamlit ends a run of the page when the browser asks for the next one, at any access to the session state: also in the
middle of a callback, of which the rest is then never done. A message would be stored but not shown, for example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from streamlit.runtime.scriptrunner import get_script_run_ctx

P = ParamSpec("P")
R = TypeVar("R")


def uninterrupted(callback: Callable[P, R]) -> Callable[P, R]:
    """Return a callback that the next run waits for."""

    @wraps(callback)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with _held():
            return callback(*args, **kwargs)

    return run


def once(callback: Callable[P, object]) -> Callable[P, None]:
    """Return a callback that does its work once until its element is drawn again. Call this while drawing.

    A double click asks twice. The second request arrives before the browser has drawn what the first one changed, with
    the same fields, and Streamlit calls what the element was last drawn with.
    """
    is_called = False

    @wraps(callback)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        nonlocal is_called
        if not is_called:
            is_called = True
            callback(*args, **kwargs)

    return run


@contextmanager
def _held() -> Iterator[None]:
    """Let this run of the page not be ended; Streamlit has no public option for it, and looks after each callback."""
    context: Any = get_script_run_ctx(suppress_warning=True)
    runner: Any = getattr(getattr(context and context.session_state, "_yield_callback", None), "__self__", None)
    if not getattr(runner, "_execing", False):
        yield
        return
    runner._execing = False
    try:
        yield
    finally:
        runner._execing = True
