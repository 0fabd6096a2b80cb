"""The screen of a terminal, computed from what was written to it."""

from __future__ import annotations

import re


def on_screen(written: str) -> list[str]:
    """Return what a terminal shows after this output: cursor up, erase to the end of the line and of the screen."""
    lines, row, column = [""], 0, 0
    for piece in re.findall(r"\x1b\[[0-9;]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", written):
        if piece == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif piece == "\r":
            column = 0
        elif piece.endswith("A") and piece.startswith("\x1b"):
            row -= int(piece[2:-1])
        elif piece == "\x1b[K":
            lines[row] = lines[row][:column]
        elif piece == "\x1b[J":
            lines[row:] = [lines[row][:column]]
        elif not piece.startswith("\x1b"):
            lines[row] = lines[row][:column].ljust(column) + piece + lines[row][column + len(piece) :]
            column += len(piece)
    return [line.rstrip() for line in lines]
