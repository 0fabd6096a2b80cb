"""Operations with a batch form: queued calls of one operation share their statements, not only the commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Op = TypeVar("Op", bound=Callable[..., Any])
Calls = Sequence[tuple[Any, ...]]
_Many = Callable[[Any, Calls], Sequence[Any]]
_batch_forms: dict[Callable[..., Any], tuple[_Many, bool]] = {}


def batched_by(many: _Many, *, of_one_key: bool = False) -> Callable[[Op], Op]:
    """Declare that `many` executes several calls of an operation at once.

    `many` gets the arguments of all calls and returns their results in order. A call whose result is None had
    no effect and is then executed by itself. The calls have different keys, unless `of_one_key`.
    """

    def register(op: Op) -> Op:
        _batch_forms[op] = many, of_one_key
        return op

    return register


def batch_function(op: Callable[..., Any], keys: Sequence[str]) -> _Many | None:
    """Return the batch form that may execute calls with these keys, if there is one."""
    many, of_one_key = _batch_forms.get(op, (None, False))
    return many if len(keys) > 1 and (of_one_key or len(set(keys)) == len(keys)) else None
