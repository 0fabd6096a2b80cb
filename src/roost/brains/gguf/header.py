"""Header of a GGUF file: whether the model takes tools."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

SEARCHED = 64 * 2**20
"""Bytes at the beginning of a file that are searched."""
_TEXT = 8
"""Type code of a string value."""


def takes_tools(file: Path) -> bool:
    """Return whether the chat template of the model mentions tools; otherwise the model would never see them.

    Reads the disk: do not call it on a loop.
    """
    try:
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return b"tools" in _text(content, b"tokenizer.chat_template")
    except (OSError, ValueError):  # unreadable; loading the model reports why
        return False


def _text(content: mmap.mmap, name: bytes) -> bytes:
    """Return a value by its name. It is searched for, not parsed: the header holds the model's whole vocabulary."""
    key = struct.pack("<Q", len(name)) + name + struct.pack("<I", _TEXT)
    at = content.find(key, 0, SEARCHED)
    if at < 0:
        return b""
    start = at + len(key) + 8
    length = int.from_bytes(content[start - 8 : start], "little")
    return content[start : start + length]
