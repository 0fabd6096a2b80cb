"""Work on threads of its own, so that a run of a page takes milliseconds; pages poll for the result."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from roost.errors import RoostError, Unavailable

T = TypeVar("T")


class BackgroundCall(Generic[T]):
    """Function that runs in the background, for at most `timeout` seconds; then it counts as failed.

    It is given a function that says whether the result is still wanted, to ask before it changes anything. Its thread
    ends with the process: it must leave nothing half done.
    """

    def __init__(self, act: Callable[[Callable[[], bool]], T], name: str, timeout: float) -> None:
        self._act: Callable[[Callable[[], bool]], T] | None = act
        self._is_dropped = False
        self._until = time.monotonic() + timeout
        self._found: list[T] = []
        self._error: RoostError = Unavailable("this takes too long: try again later")
        self._ended = threading.Event()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def _run(self) -> None:
        act, self._act = self._act, None  # it may hold a secret
        assert act is not None
        try:
            self._found.append(act(self._is_wanted))
        except RoostError as error:
            self._error = error
        finally:
            self._ended.set()

    def _is_wanted(self) -> bool:
        return not self._is_dropped and time.monotonic() <= self._until

    def drop(self) -> None:
        """Say that nobody wants the result any more."""
        self._is_dropped = True

    @property
    def is_done(self) -> bool:
        return self._ended.is_set() or time.monotonic() > self._until

    def result(self) -> T:
        """Return the result of a job that is done, or raise its error."""
        if self._ended.is_set() and self._found:
            return self._found[0]
        raise self._error
