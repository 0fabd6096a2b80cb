"""Pictures drawn over each other in a terminal: nothing is blank in between, and the cursor comes back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


class Screen:
    """The cursor is hidden while it lasts; what was drawn last stays. A line must not be wider than the terminal."""

    def __init__(self) -> None:
        self._drawn = 0

    def __enter__(self) -> Self:
        print(HIDE, end="")
        return self

    def __exit__(self, *_: object) -> None:
        print(SHOW, end="", flush=True)

    def draw(self, lines: Sequence[str]) -> None:
        # Up to where the last one began, and each line anew to its end.
        body = "".join(f"\r{text}\x1b[K\n" for text in lines)
        print(f"\x1b[{self._drawn}A" if self._drawn else "", body, "\x1b[J", sep="", end="", flush=True)
        self._drawn = len(lines)
