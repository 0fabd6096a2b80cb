"""Commands in a terminal of their own, and a person who looks and types."""

from __future__ import annotations

import os
import pty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.cli.running import COMMAND, environment
from tests.conftest import eventually
from tests.forks import Popen


class Terminal:
    """`seen`: all that was written to it so far."""

    def __init__(self, folder: Path, *arguments: str, term: str = "dumb") -> None:
        self._own, theirs = pty.openpty()
        self.process = Popen[bytes](
            [*COMMAND, *arguments],
            cwd=folder,
            env=environment(folder) | {"TERM": term},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        os.set_blocking(self._own, False)
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self._own, text.encode())

    def shows(self, text: str) -> bool:
        with suppress(OSError):
            self.seen += os.read(self._own, 65536).decode()
        return text in self.seen

    def becomes(self, text: str, seconds: float = 30.0) -> None:
        """Wait until this is shown."""
        eventually(lambda: self.shows(text), seconds)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        os.close(self._own)


@contextmanager
def terminal(folder: Path, *arguments: str, term: str = "dumb") -> Iterator[Terminal]:
    opened = Terminal(folder, *arguments, term=term)
    try:
        yield opened
    finally:
        opened.close()
