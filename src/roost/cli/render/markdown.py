"""Markdown in a terminal: finished blocks are printed once, the block that is being written is redrawn in place."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from io import StringIO

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console
from rich.markdown import Markdown

from roost.cli.render.text import sanitize

LARGE = 4_000
"""Characters of a block from which it is redrawn less often: each time the whole block is rendered."""
PAUSE = 0.2
_PARSER = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table")
"""Tags of HTML are text here: a terminal cannot show them, and nothing may be left out."""


class MarkdownStream:
    """Text that arrives piece by piece, printed as Markdown."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._rest = ""
        """The block that may still grow."""
        self._drawn: list[str] = []
        self._has_printed = False
        self._latest = 0.0

    def put(self, text: str) -> None:
        self._rest += text
        if len(self._rest) > LARGE and time.monotonic() - self._latest < PAUSE:
            return
        finished, self._rest = split(self._rest)
        if finished:
            self._print(finished)
        self._draw(self._lines(self._rest)[-_height() :])

    def close(self) -> bool:
        """Print what is left and end the line; return whether anything was printed."""
        if self._rest.strip():
            self._print(self._rest)
        printed, self._rest, self._has_printed = self._has_printed, "", False
        return printed

    def _print(self, text: str) -> None:
        self._draw(self._lines(text))
        self._write("\n")
        self._has_printed, self._drawn = True, []

    def _lines(self, text: str) -> list[str]:
        """Return the lines of a block, after an empty one if another block is above."""
        lines = render(text)
        return ["", *lines] if lines and self._has_printed else lines

    def _draw(self, lines: list[str]) -> None:
        """Replace what was drawn last, in one write, so that nothing flickers."""
        if lines == self._drawn:
            return
        up = f"\x1b[{len(self._drawn) - 1}A" if len(self._drawn) > 1 else ""
        self._write("\r" + up + "\x1b[K\n".join(lines) + "\x1b[K\x1b[J")
        self._drawn, self._latest = lines, time.monotonic()


def split(text: str) -> tuple[str, str]:
    """Split a text after its last finished block: only the last block can still change."""
    starts = [token.map[0] for token in _PARSER.parse(text) if token.level == 0 and token.map and token.nesting >= 0]
    if len(starts) < 2:
        return "", text
    lines = text.split("\n")
    return "\n".join(lines[: starts[-1]]), "\n".join(lines[starts[-1] :])


def render(text: str) -> list[str]:
    """Return the lines of a text as a terminal shows them, as wide as the terminal."""
    text = sanitize(text)
    shown = Markdown("", code_theme="ansi_dark", hyperlinks=False)
    shown.parsed = [_plain(token) for token in _PARSER.parse(text)]
    out = StringIO()
    console = Console(file=out, force_terminal=True, width=max(20, shutil.get_terminal_size().columns - 1))
    console.print(shown, end="")
    lines = [line.rstrip() for line in out.getvalue().split("\n")]
    used = [number for number, line in enumerate(lines) if line]
    return lines[used[0] : used[-1] + 1] if used else []


def _plain(token: Token) -> Token:
    """Return a token that keeps the lines of the answer, and names images in their place."""
    for child in token.children or ():
        if child.type == "softbreak":
            child.type = "hardbreak"
        elif child.type == "image":
            child.content = f"{child.content or 'image'} ({child.attrs.get('src', '')})"
            child.type, child.tag, child.children = "text", "", None
    return token


def _height() -> int:
    """Return the number of lines that can be redrawn: those above have scrolled away."""
    return max(4, shutil.get_terminal_size().lines - 2)
