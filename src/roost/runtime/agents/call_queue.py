"""Queue of calls from any thread to an activation, which run on its loop in order."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

log = logging.getLogger("roost.agent")


class CallQueue:
    """Any thread may append; the loop of the activation runs the calls."""

    __slots__ = ("_calls", "is_scheduled")

    def __init__(self) -> None:
        self._calls: deque[Callable[[], None]] = deque()
        self.is_scheduled = False
        """True if the loop was asked to run the calls."""

    def __bool__(self) -> bool:
        return bool(self._calls)

    def append(self, act: Callable[[], None]) -> None:
        self._calls.append(act)

    def run(self, address: str) -> None:
        calls = self._calls
        while calls:
            act = calls.popleft()
            try:
                act()
            except Exception:  # the other calls must run all the same
                log.exception("call to an agent failed; continuing with the next one", extra={"agent": address})
