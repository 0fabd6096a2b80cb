"""Printing of answers: as Markdown in a terminal, as plain text elsewhere."""

from __future__ import annotations

import os
import sys
import threading
from typing import Protocol

from roost.cli.render.markdown import MarkdownStream
from roost.cli.render.text import sanitize


class Printer(Protocol):
    """Printer of one answer after the other. Its methods may be called by several threads."""

    @property
    def is_in_line(self) -> bool:
        """Return whether the last output did not end its line."""
        ...

    def put(self, text: str) -> None:
        """Print the next piece of an answer."""
        ...

    def end_line(self) -> None:
        """End the line, for output of another kind."""
        ...

    def end(self, mark: str = "") -> None:
        """End the answer, with a mark such as `(stopped)`."""
        ...


class PlainPrinter:
    """Prints each piece as it is, without escape sequences."""

    def __init__(self) -> None:
        self.is_in_line = False

    def put(self, text: str) -> None:
        if shown := sanitize(text):
            write(shown)
            self.is_in_line = not shown.endswith("\n")

    def end_line(self) -> None:
        if self.is_in_line:
            self.put("\n")

    def end(self, mark: str = "") -> None:
        if mark or self.is_in_line:
            self.put(f" {mark}\n" if mark else "\n")


class MarkdownPrinter:
    """Renders Markdown while it arrives."""

    def __init__(self) -> None:
        self._stream = MarkdownStream(write)
        self._lock = threading.Lock()
        self.is_in_line = False

    def put(self, text: str) -> None:
        with self._lock:
            if text:
                self._stream.put(text)
                self.is_in_line = True

    def end_line(self) -> None:
        with self._lock:
            self._close()

    def end(self, mark: str = "") -> None:
        with self._lock:
            self._close()
            if mark:
                write(f"{mark}\n")

    def _close(self) -> None:
        if self.is_in_line:
            self._stream.close()
            self.is_in_line = False


def printer() -> Printer:
    """Return the printer for standard output."""
    return MarkdownPrinter() if draws() else PlainPrinter()


def draws() -> bool:
    """Return whether standard output is a terminal that can move its cursor."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
