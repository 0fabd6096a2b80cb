"""Sets the clock of a process wrong: nodes of a test import this module at their start."""

from __future__ import annotations

import datetime
import os
import time

AHEAD = float(os.environ["WRONG_CLOCK"])
_time, _time_ns = time.time, time.time_ns


class WrongDatetime(datetime.datetime):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> WrongDatetime:
        return cls.fromtimestamp(_time() + AHEAD, tz)


time.time = lambda: _time() + AHEAD
time.time_ns = lambda: _time_ns() + int(AHEAD * 1e9)
datetime.datetime = WrongDatetime  # type: ignore[misc]
