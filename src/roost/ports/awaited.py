"""Tracking of coroutines that a brain creates: one that is never awaited does nothing."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Coroutine
from types import CoroutineType
from typing import Any, Protocol, TypeAlias, TypeVar, cast

Made: TypeAlias = "list[CoroutineType[Any, Any, Any]]"
F = TypeVar("F", bound=Callable[..., Coroutine[Any, Any, Any]])

PRUNED_FROM = 1_024


class Tracking(Protocol):
    _made: Made | None


def tracked(method: F) -> F:
    """Decorate a method so that its object keeps each coroutine it creates until that has ended."""

    @functools.wraps(method)
    def call(self: Tracking, *args: Any, **options: Any) -> Any:
        made: Any = method(self, *args, **options)
        kept = self._made
        if kept is None:
            self._made = [made]
        else:
            kept.append(made)
            count = len(kept)
            if count >= PRUNED_FROM and not count & (count - 1):
                self._made = [one for one in kept if is_open(one)]
        return made

    if sys.version_info >= (3, 12):
        inspect.markcoroutinefunction(call)
    return cast("F", call)


def is_open(one: CoroutineType[Any, Any, Any]) -> bool:
    """Return whether it has not ended."""
    return one.cr_frame is not None
