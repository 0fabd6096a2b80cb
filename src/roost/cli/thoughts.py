"""What an agent thinks and does on the way to its answer, in a terminal: a dimmed line each, however long it is."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable

from roost.cli.tables import cut, size
from roost.cli.text import line
from roost.core.notes import LEFT_OUT, Call, Channel, Notes, calls

MARK = "· "
MOST = 1_000
"""Characters of a thought that are looked at: no terminal is wider."""
DIM, PLAIN = "\x1b[2m", "\x1b[0m"
_SHOWN = (Channel.THINKING, Channel.COMMENTARY, Channel.TOOLS, Channel.SUMMARY)


class Thoughts:
    """The newest line is drawn over itself while it grows; in a terminal that cannot do that, when it is over."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._draws = os.environ.get("TERM", "dumb") != "dumb"
        self._channel = ""
        self._text = ""
        self._done = 0
        """How many calls of the tools of this note have their lines."""

    @property
    def are_open(self) -> bool:
        """Whether a line is being drawn."""
        return bool(self._channel)

    def grow(self, notes: Notes) -> None:
        for note in notes:
            if note.channel not in _SHOWN:
                continue
            if note.channel != self._channel:
                self.close()
                self._channel = note.channel
            self._text += note.text
            if note.channel == Channel.TOOLS:
                self._call_after_call()
            elif self._draws and (newest := self._newest()):
                self._draw(newest, end="")

    def close(self) -> None:
        """What comes next is on a line of its own."""
        if self._channel == Channel.TOOLS:
            for call in calls(self._text)[self._done :]:
                self._draw(_called(call))
        elif told := self._told():
            self._draw(told)
        self._channel, self._text, self._done = "", "", 0

    def _call_after_call(self) -> None:
        """Each that has its result gets its line; the one after them is drawn while it is under way."""
        found = calls(self._text)
        while self._done < len(found) and found[self._done].result is not None:
            self._draw(_called(found[self._done]))
            self._done += 1
        if self._draws and self._done < len(found):
            self._draw(_called(found[self._done]), end="")

    def _newest(self) -> str:
        """As much of its end as fits."""
        told = self._told() if len(self._text) < MOST else line(self._text[-MOST:])
        return told if size(told) < _room() - len(MARK) else f"…{told[len(MARK) + 1 - _room() :]}"

    def _told(self) -> str:
        if self._channel != Channel.SUMMARY:
            return line(self._text[:MOST])
        done = "left out" if LEFT_OUT in self._text.partition("\n")[0] else "summed up"
        return f"What was said before was {done}, so that the rest fits into what the model can read."

    def _draw(self, text: str, end: str = "\n") -> None:
        told = cut(MARK + text, _room())
        self._write(f"\r{DIM}{told}{PLAIN}\x1b[K{end}" if self._draws else f"{told}{end}")


def _room() -> int:
    return shutil.get_terminal_size().columns - 1


def _called(call: Call) -> str:
    result = "…" if call.result is None else call.result
    return line(f"{call.tool} {json.dumps(call.arguments, ensure_ascii=False)} {'→' if call.ok else '✗'} {result}")
