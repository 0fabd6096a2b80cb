"""What a GGUF file says of itself, as far as it matters here: whether the model takes tools."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

SEARCHED = 64 * 2**20
"""Bytes at the beginning of a file in which all of it stands."""
_TEXT = 8
"""The mark of a value that is a text."""


def takes_tools(file: Path) -> bool:
    """Whether its template, by which a talk is put to it, speaks of tools: else the model would never hear of them.

    It is read from the disk: not on a loop.
    """
    try:
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return b"tools" in _text(content, b"tokenizer.chat_template")
    except (OSError, ValueError):  # nothing to be read there; whoever loads it says why
        return False


def _text(content: mmap.mmap, name: bytes) -> bytes:
    """A value by its name. A file begins with a list of both, among them all the words that a model knows: it is not
    read through, but looked for."""
    key = struct.pack("<Q", len(name)) + name + struct.pack("<I", _TEXT)
    at = content.find(key, 0, SEARCHED)
    if at < 0:
        return b""
    start = at + len(key) + 8
    length = int.from_bytes(content[start - 8 : start], "little")
    return content[start : start + length]
