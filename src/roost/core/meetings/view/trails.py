"""Trails: persistent sequences with constant-time append; they share their earlier items."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Trail(Generic[T]):
    """Persistent sequence. A view is kept for many positions in a log, and tuples would be copied each time."""

    __slots__ = ("_before", "_last", "_length")

    def __init__(self, before: Trail[T] | None = None, *last: T) -> None:
        """Create an empty trail, or one with another item; see `added`."""
        self._before = before
        self._last = last
        self._length: int = (before._length if before is not None else 0) + len(last)

    def added(self, item: T) -> Trail[T]:
        return Trail(self, item)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        return reversed(list(self.__reversed__()))

    def __reversed__(self) -> Iterator[T]:
        here: Trail[T] | None = self
        while here is not None:
            yield from here._last
            here = here._before

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trail):
            return NotImplemented
        return self is other or (len(self) == len(other) and all(map(_same, reversed(self), reversed(other))))

    __hash__ = None  # type: ignore[assignment] # Equal trails may differ in structure.

    def __repr__(self) -> str:
        return f"Trail({list(self)})"


def _same(value: object, other: object) -> bool:
    return value is other or value == other
