"""Pagination with an in-memory filter over SQL results: the state of awake agents is not in the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from roost.core.talks.messages import PAGE

T = TypeVar("T")
AFTER_ALL_IDS = "\x7f"
"""Sorts after every id."""


async def fitting(
    page: Callable[[int, str], Awaitable[list[T]]],
    fits: Callable[[T], bool],
    limit: int,
    start: str,
    name: Callable[[T], str],
) -> list[T]:
    """Return the first `limit` items that match. `page` returns a number of items after a name."""
    found: list[T] = []
    size = limit
    while len(found) < limit:
        some = await page(size, start)
        found += filter(fits, some)
        if len(some) < size:
            break
        start, size = name(some[-1]), max(limit, PAGE)  # larger pages, since few items may match
    return found[:limit]
