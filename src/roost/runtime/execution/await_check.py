"""Awaiting: a brain that calls a coroutine method of its turn and does not await it has done nothing, and fails."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator

from roost.core.failures.faults import Fault
from roost.errors import BrainFailed
from roost.ports import Meeting, Turn
from roost.ports.awaited import Made, is_open

_MAY_BE_LEFT = frozenset({"ask", "pause", "step", "call_tool", "recall"})
"""Methods whose result a brain may give up: what they do outside is done, or on record, without it."""


async def check_awaited(turn: Turn) -> None:
    """Raise BrainFailed that names what was called and not awaited, or not to its end."""
    meeting: Meeting | None = turn.meeting
    tracked = {"turn": turn._made, "turn.meeting": None if meeting is None else meeting._made}
    if not any(is_open(one) for made in tracked.values() for one in made or ()):
        return
    await asyncio.sleep(0)  # it may have been given to a task that has not begun
    found = [f"{place}.{name}(...)" for place, made in tracked.items() for name in _unawaited(made or [])]
    if found:
        raise BrainFailed(
            f"{found[0]} was not awaited: write `await {found[0]}`",
            kind=Fault.UNAWAITED,
            advice=f"write `await {found[0]}` there, then try again",
        )


def _unawaited(made: Made) -> Iterator[str]:
    for one in filter(is_open, made):
        is_new = inspect.getcoroutinestate(one) == inspect.CORO_CREATED
        if is_new:
            one.close()
        if is_new or one.__name__ not in _MAY_BE_LEFT:
            yield one.__name__
