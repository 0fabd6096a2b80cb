"""Live display in a terminal: each frame is drawn over the last one without flicker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


class Screen:
    """Live display that hides the cursor and leaves its last frame. Lines must not be wider than the terminal."""

    def __init__(self) -> None:
        self._drawn = 0

    def __enter__(self) -> Self:
        print(HIDE, end="")
        return self

    def __exit__(self, *_: object) -> None:
        print(SHOW, end="", flush=True)

    def draw(self, lines: Sequence[str]) -> None:
        # Move up to the start of the last frame and overwrite each line to its end.
        body = "".join(f"\r{text}\x1b[K\n" for text in lines)
        print(f"\x1b[{self._drawn}A" if self._drawn else "", body, "\x1b[J", sep="", end="", flush=True)
        self._drawn = len(lines)
