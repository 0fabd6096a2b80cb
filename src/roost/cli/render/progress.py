"""Progress of long work, on one line of a terminal."""

from __future__ import annotations

import sys
import time
from typing import Self

PAUSE = 0.1


class Progress:
    """Line on standard error that is redrawn at most ten times a second; nothing is printed elsewhere."""

    def __init__(self, verb: str) -> None:
        self._verb = verb
        self._latest = 0.0
        self._is_shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def show(self, text: str) -> None:
        now = time.monotonic()
        if sys.stderr.isatty() and now - self._latest > PAUSE:
            self._latest, self._is_shown = now, True
            print(f"\r{self._verb} {text} …\x1b[K", end="", file=sys.stderr, flush=True)
