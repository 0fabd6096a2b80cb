"""Threads for blocking functions of ADK agents: one per call, owned by the turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from google.adk.utils import _sync_runner

from roost.ports import Turn


@contextmanager
def own_threads(turn: Turn) -> Iterator[None]:
    """Make the ADK call blocking functions on separate threads instead of its pool.

    The pool of the ADK has four threads per loop. A blocked call keeps its thread after its turn was stopped: a few of
    them would block every other turn on that loop, and the end of the program.
    """

    async def run(target: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        found: list[Any] = []

        def call() -> None:
            with _sync_runner._use_sync_callable_runner(None):  # nested calls stay on this thread
                found.append(target(**arguments))

        await turn._running.off_loop(call, f"tool {getattr(target, '__name__', 'function')}")
        return found[0]

    token = _sync_runner._SYNC_CALLABLE_RUNNER.set(run)
    try:
        yield
    finally:
        with suppress(ValueError):  # closed outside of its task: that context is gone
            _sync_runner._SYNC_CALLABLE_RUNNER.reset(token)
