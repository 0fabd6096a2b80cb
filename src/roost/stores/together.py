"""Operations done for many at once: of those that wait, the like share their statements, not only the commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Op = TypeVar("Op", bound=Callable[..., Any])
Calls = Sequence[tuple[Any, ...]]
_Many = Callable[[Any, Calls], Sequence[Any]]
_known: dict[Callable[..., Any], tuple[_Many, bool]] = {}


def done_by(many: _Many, *, of_one_key: bool = False) -> Callable[[Op], Op]:
    """`many` is given the arguments of several calls, and gives what each of them would have given.

    None instead of that: it has done nothing for this one, which is to be done by itself. They have different keys,
    unless it does those `of_one_key` too.
    """

    def know(op: Op) -> Op:
        _known[op] = many, of_one_key
        return op

    return know


def many_of(op: Callable[..., Any], keys: Sequence[str]) -> _Many | None:
    """Who does calls with these keys together, if anyone does."""
    many, of_one_key = _known.get(op, (None, False))
    return many if len(keys) > 1 and (of_one_key or len(set(keys)) == len(keys)) else None
