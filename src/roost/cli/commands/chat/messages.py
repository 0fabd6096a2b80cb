"""Messages of `roost chat`: typed lines, an argument, or everything in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from roost.cli.commands.chat.printers import write
from roost.errors import Invalid

MOST_BYTES = 64 * 1024 * 1024
"""Bytes that are read from a pipe; the limit of the server is lower."""


def typed_lines(prompt: Callable[[], str]) -> Iterator[str]:
    """Yield each line that is typed, until Ctrl-D."""
    import readline  # noqa: F401 — adds editing and history to `input`

    while True:
        try:
            yield input(prompt())
        except EOFError:
            write("\n")
            return


def single_message(given: str | None) -> str:
    """Return the message of an argument, of a pipe, or of both: the argument first."""
    piped = _piped() if given == "-" or not sys.stdin.isatty() else ""
    return "\n\n".join(part for part in (given if given != "-" else "", piped) if part and part.strip())


def _piped() -> str:
    content = sys.stdin.buffer.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise Invalid(f"standard input is too long for a message: {MOST_BYTES:,} bytes are read")
    try:
        return content.decode("utf-8-sig").removesuffix("\n")
    except UnicodeDecodeError:
        raise Invalid("standard input is not text in UTF-8: send a file with --attach FILE") from None
