"""Check for coroutines of a turn that a brain has created and never awaited."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator

from roost.core.failures.faults import Fault
from roost.errors import BrainFailed
from roost.ports import Meeting, Turn
from roost.ports.awaited import CreatedCoroutines, is_open

_MAY_BE_LEFT = frozenset({"ask", "pause", "step", "call_tool", "recall"})
"""Methods whose result a brain may discard: their effect is done or recorded without it."""


async def check_awaited(turn: Turn) -> None:
    """Raise BrainFailed with the name of a coroutine that was not awaited, or not to its end."""
    meeting: Meeting | None = turn.meeting
    tracked = {"turn": turn._coroutines, "turn.meeting": None if meeting is None else meeting._coroutines}
    if not any(is_open(coroutine) for coroutines in tracked.values() for coroutine in coroutines or ()):
        return
    await asyncio.sleep(0)  # a task that has not started may hold it
    found = [f"{owner}.{name}(...)" for owner, coroutines in tracked.items() for name in _unawaited(coroutines or [])]
    if found:
        raise BrainFailed(
            f"{found[0]} was not awaited: write `await {found[0]}`",
            kind=Fault.UNAWAITED,
            advice=f"write `await {found[0]}` there, then try again",
        )


def _unawaited(coroutines: CreatedCoroutines) -> Iterator[str]:
    for coroutine in filter(is_open, coroutines):
        is_new = inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED
        if is_new:
            coroutine.close()
        if is_new or coroutine.__name__ not in _MAY_BE_LEFT:
            yield coroutine.__name__
