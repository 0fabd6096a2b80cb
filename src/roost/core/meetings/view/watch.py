"""Successive views of a meeting, for callers that follow it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from roost.core.meetings.view.shown import MeetingView


async def watched(
    view: Callable[[], Awaitable[MeetingView]],
    wait: Callable[[str], Awaitable[MeetingView]],
    after: str | None,
    is_closing: Callable[[], bool] = lambda: False,
) -> AsyncIterator[MeetingView]:
    """Yield each view once, until the meeting is over.

    `view` returns the present view; `wait` returns the first view that differs from the one with the given cursor.
    """
    while True:
        found = await view() if after is None else await wait(after)
        if found.cursor != after:
            yield found
        if found.is_over or is_closing():
            return
        after = found.cursor
