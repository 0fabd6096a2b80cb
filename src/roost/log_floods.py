"""Flood protection of the log: of many similar records within seconds a few are kept, and the others counted."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Container
from dataclasses import dataclass
from time import monotonic

LOGGERS = frozenset({"uvicorn.error", "asyncio", "roost.api.security", "roost.api.connections"})
"""Loggers that visitors can make write without limit."""
FAILURES = frozenset({"roost.run", "roost.tools"})
"""Loggers of failed brains and tools: a file keeps every failure, a terminal would be flooded with tracebacks."""
KEPT = 20
"""Similar records kept per window."""
WINDOW = 10.0
MOST_KINDS = 1_000

_Kind = tuple[str, int, str]


@dataclass(slots=True)
class _Window:
    began: float
    seen: int = 0


class FloodFilter(logging.Filter):
    """Filter of one handler, which gets one record with the count at the end of a flood."""

    def __init__(
        self, handler: logging.Handler, now: Callable[[], float] = monotonic, loggers: Container[str] = LOGGERS
    ) -> None:
        super().__init__()
        self._loggers = loggers
        self._handler = handler
        self._now = now
        self._windows: OrderedDict[_Kind, _Window] = OrderedDict()
        """Oldest first."""

    def filter(self, record: logging.LogRecord) -> bool:
        now = self._now()
        if hasattr(record, "left_out"):
            return True
        self._close_windows(now)
        if record.name not in self._loggers:
            return True
        kind = (record.name, record.levelno, str(record.msg))
        window = self._windows.setdefault(kind, _Window(now))
        window.seen += 1
        return window.seen <= KEPT

    def _close_windows(self, now: float) -> None:
        while self._windows:
            kind, window = next(iter(self._windows.items()))
            if now - window.began < WINDOW and len(self._windows) < MOST_KINDS:
                return
            self._windows.pop(kind, None)
            if window.seen > KEPT:
                self._report(kind, window.seen - KEPT)

    def _report(self, kind: _Kind, count: int) -> None:
        name, level, message = kind
        text = f"{count:,} similar records were suppressed: {message:.500}"
        self._handler.handle(
            logging.makeLogRecord(
                {"name": name, "levelno": level, "levelname": logging.getLevelName(level), "msg": text, "args": None}
                | {"left_out": count}
            )
        )
