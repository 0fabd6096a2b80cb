"""Tracking of coroutines that a brain creates: one that is never awaited does nothing."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Coroutine
from types import CoroutineType
from typing import Any, Protocol, TypeAlias, TypeVar, cast

CreatedCoroutines: TypeAlias = "list[CoroutineType[Any, Any, Any]]"
F = TypeVar("F", bound=Callable[..., Coroutine[Any, Any, Any]])

PRUNED_FROM = 1_024


class Tracking(Protocol):
    _coroutines: CreatedCoroutines | None


def tracked(method: F) -> F:
    """Decorate a method so that its object keeps each coroutine it creates until that has ended."""

    @functools.wraps(method)
    def call(self: Tracking, *args: Any, **options: Any) -> Any:
        coroutine: Any = method(self, *args, **options)
        coroutines = self._coroutines
        if coroutines is None:
            self._coroutines = [coroutine]
        elif coroutines[-1].cr_frame is None:  # the usual case: each is awaited before the next
            coroutines[-1] = coroutine
        else:
            coroutines.append(coroutine)
            count = len(coroutines)
            if count >= PRUNED_FROM and not count & (count - 1):
                self._coroutines = list(filter(is_open, coroutines))
        return coroutine

    if sys.version_info >= (3, 12):
        inspect.markcoroutinefunction(call)
    return cast("F", call)


def is_open(coroutine: CoroutineType[Any, Any, Any]) -> bool:
    """Return True if the coroutine has not ended."""
    return coroutine.cr_frame is not None
