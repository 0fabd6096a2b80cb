"""Recorded results: what the actions of a turn returned or refused, for a replay."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar, cast

from roost.errors import RoostError
from roost.runtime.outgoing.outbox import as_recorded_error

F = TypeVar("F", bound=Callable[..., Awaitable[Any]])


class HasResults(Protocol):
    seen: dict[str, list[Any]]


def recorded_result(method: F) -> F:
    """Decorate a method so that its results and refusals are recorded, in the order of the calls."""

    @functools.wraps(method)
    async def call(self: HasResults, *args: Any, **options: Any) -> Any:
        results = self.seen.setdefault(method.__name__, [])
        position = len(results)
        results.append(None)
        try:
            results[position] = result = await method(self, *args, **options)
        except RoostError as error:
            results[position] = {"refused": as_recorded_error(error)}
            raise
        return result

    return cast("F", call)
