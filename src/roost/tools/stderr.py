"""Standard error of a subprocess, whose last lines are kept for error messages."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TextIO

log = logging.getLogger("roost.mcp")

LINES = 10
LINE_CHARS = 500
PATIENCE = 0.5
"""Seconds to wait for the last output of a subprocess that has ended."""


class Stderr(asyncio.Protocol):
    """Protocol that reads the standard error of a subprocess, and logs it at debug level."""

    def __init__(self, name: str, clean: Callable[[str], str]) -> None:
        self._name = name
        self._clean = clean
        self._lines: deque[str] = deque(maxlen=LINES)
        self._rest = b""
        self._ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._add(line)
        self._rest = self._rest[-4 * LINE_CHARS :]

    def connection_lost(self, error: Exception | None) -> None:
        self._add(self._rest)
        self._rest = b""
        self._ended.set()

    def _add(self, line: bytes) -> None:
        text = self._clean(line.decode(errors="replace").strip())[:LINE_CHARS]
        if text:
            self._lines.append(text)
            log.debug("%s: %s", self._name, text, extra={"server": self._name})

    async def ended(self) -> None:
        """Wait for the last output of a subprocess that has ended, for a bounded time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await self._ended.wait()

    def tail(self) -> str:
        """Return the last lines as the end of a sentence; empty if there are none."""
        return f"; its last lines: {' | '.join(self._lines)}" if self._lines else ""


@asynccontextmanager
async def piped(stderr: Stderr) -> AsyncIterator[TextIO]:
    """Yield a file for a subprocess to write to. Close it after the start, otherwise the end is not noticed."""
    reading, writing = os.pipe()
    file = os.fdopen(writing, "w", encoding="utf-8")
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: stderr, os.fdopen(reading, "rb"))
    try:
        yield file
    finally:
        file.close()
        transport.close()
