"""What is typed while an answer is being written: each line is said at once, and nothing is lost."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable
from typing import Self


class Typing:
    """Reads the terminal on a thread of its own while the block runs, and hands over each line.

    Without `reading` nothing is read: a pipe keeps its lines for their turn.
    """

    def __init__(self, say: Callable[[str], object], *, reading: bool) -> None:
        self._say = say
        self._reading = reading
        self._thread = threading.Thread(target=self._read, name="roost-typing", daemon=True)
        self.said = False
        self.over = False
        """Whether Ctrl-D was typed."""

    def __enter__(self) -> Self:
        if self._reading:
            self._end, self._bell = os.pipe()
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._reading:
            os.close(self._bell)
            self._thread.join()
            os.close(self._end)

    def _read(self) -> None:
        terminal = sys.stdin.fileno()
        while self._end not in select.select([terminal, self._end], [], [])[0]:
            # The terminal gives whole lines; what has no end yet stays with it, and the next prompt shows it.
            data = os.read(terminal, 65536)
            self.over = not data
            if self.over:
                return
            self._hand_over(data.decode(errors="replace"))

    def _hand_over(self, typed: str) -> None:
        for text in typed.split("\n"):
            if text.strip():
                self._say(text)
                self.said = True
