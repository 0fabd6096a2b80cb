"""Single flight: of several concurrent callers with the same key, one does the work and all get its result."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

T = TypeVar("T")
Lock = AbstractContextManager[object]


class SingleFlight:
    """Runner of one call per key at a time; concurrent callers share its result or error.

    Results are not cached: a later call runs again, so a failure is retried.
    """

    def __init__(self, new_lock: Callable[[], Lock]) -> None:
        self._new_lock = new_lock
        self._lock = new_lock()
        self._flights: dict[str, _Flight] = {}

    def do(self, key: str, act: Callable[[], T]) -> T:
        """Return what `act` returns, or raise what it raises; blocks while another thread runs it for this key."""
        with self._lock:
            flight = self._flights.setdefault(key, _Flight(self._new_lock()))
        with flight.lock:  # the first one does the work
            if not flight.landed:
                self._fly(key, flight, act)
        if flight.error is not None:
            raise flight.error
        return flight.result  # type: ignore[no-any-return]

    def _fly(self, key: str, flight: _Flight, act: Callable[[], object]) -> None:
        try:
            flight.result = act()
        except BaseException as error:
            flight.error = error
        flight.landed = True
        with self._lock:
            del self._flights[key]


class _Flight:
    __slots__ = ("error", "landed", "lock", "result")

    def __init__(self, lock: Lock) -> None:
        self.lock = lock
        self.landed = False
        self.result: Any = None
        self.error: BaseException | None = None
