"""Operations done for many at once: of those that wait, the like share their statements, not only the commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Op = TypeVar("Op", bound=Callable[..., Any])
Calls = Sequence[tuple[Any, ...]]
_Many = Callable[[Any, Calls], Sequence[Any]]
_known: dict[Callable[..., Any], _Many] = {}


def done_by(many: _Many) -> Callable[[Op], Op]:
    """`many` is given the arguments of several calls with different keys, and gives what each of them would have given.

    None instead of that: it has done nothing for this one, which is to be done by itself.
    """

    def know(op: Op) -> Op:
        _known[op] = many
        return op

    return know


def many_of(op: Callable[..., Any]) -> _Many | None:
    return _known.get(op)
