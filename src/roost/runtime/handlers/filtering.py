"""Pages of what fits a wish that the store alone cannot judge: what is being done is known where it is done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from roost.core.talks.messages import PAGE

T = TypeVar("T")


async def fitting(
    page: Callable[[int, str], Awaitable[list[T]]],
    fits: Callable[[T], bool],
    limit: int,
    start: str,
    name: Callable[[T], str],
) -> list[T]:
    """Return the first that fit. `page` returns the given number of items after a name."""
    found: list[T] = []
    size = limit
    while len(found) < limit:
        some = await page(size, start)
        found += filter(fits, some)
        if len(some) < size:
            break
        start, size = name(some[-1]), max(limit, PAGE)  # one by one would be slow
    return found[:limit]
