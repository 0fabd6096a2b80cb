"""Thinking and tool calls of an agent in a terminal: one dimmed line each."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable

from rich.cells import cell_len

from roost.cli.render.tables import truncate
from roost.cli.render.text import single_line
from roost.core.talks.side_channels import LEFT_OUT, Channel, Notes, ToolNote, calls

MARK = "· "
MOST = 1_000
"""Maximum number of characters that are rendered: no terminal is wider."""
DIM, PLAIN = "\x1b[2m", "\x1b[0m"
_SHOWN = (Channel.THINKING, Channel.COMMENTARY, Channel.TOOLS, Channel.SUMMARY)


class Thoughts:
    """Printer of thinking and tool calls.

    The newest line is redrawn while it grows; on a dumb terminal it is printed when it is complete.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._draws = os.environ.get("TERM", "dumb") != "dumb"
        self._channel = ""
        self._text = ""
        self._done = 0
        """Number of tool calls of this note that are already printed."""

    @property
    def are_open(self) -> bool:
        """True while a line is being drawn."""
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
        """Finish the current line."""
        if self._channel == Channel.TOOLS:
            for call in calls(self._text)[self._done :]:
                self._draw(_called(call))
        elif text := self._summary():
            self._draw(text)
        self._channel, self._text, self._done = "", "", 0

    def _call_after_call(self) -> None:
        """Print a line for each finished call and draw the one that is in progress."""
        found = calls(self._text)
        while self._done < len(found) and found[self._done].result is not None:
            self._draw(_called(found[self._done]))
            self._done += 1
        if self._draws and self._done < len(found):
            self._draw(_called(found[self._done]), end="")

    def _newest(self) -> str:
        """Return as much of the end of the text as fits."""
        text = self._summary() if len(self._text) < MOST else single_line(self._text[-MOST:])
        return text if cell_len(text) < _room() - len(MARK) else f"…{text[len(MARK) + 1 - _room() :]}"

    def _summary(self) -> str:
        if self._channel != Channel.SUMMARY:
            return single_line(self._text[:MOST])
        done = "omitted" if LEFT_OUT in self._text.partition("\n")[0] else "summarized"
        return f"Earlier messages were {done} to fit into the context window of the model."

    def _draw(self, text: str, end: str = "\n") -> None:
        text = truncate(MARK + text, _room())
        self._write(f"\r{DIM}{text}{PLAIN}\x1b[K{end}" if self._draws else f"{text}{end}")


def _room() -> int:
    return shutil.get_terminal_size().columns - 1


def _called(call: ToolNote) -> str:
    result = "…" if call.result is None else call.result
    return single_line(
        f"{call.tool} {json.dumps(call.arguments, ensure_ascii=False)} {'→' if call.ok else '✗'} {result}"
    )
