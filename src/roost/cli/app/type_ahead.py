"""Lines typed while an answer is being printed: each is sent at once."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable
from typing import Self


class TypeAhead:
    """Reader of the terminal on its own thread, which passes each line to `say` while the block runs.

    Without `reading` nothing is read: the lines of a pipe are read when it is their turn.
    """

    def __init__(self, say: Callable[[str], object], *, reading: bool) -> None:
        self._say = say
        self._reading = reading
        self._thread = threading.Thread(target=self._read, name="roost-typing", daemon=True)
        self.said = False
        self.over = False
        """True after Ctrl-D."""

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
            # The terminal delivers whole lines; an unfinished line stays there and the next prompt shows it.
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
