"""What a GGUF file says of itself: what the model is called, how large it is, and whether it takes tools.

Its beginning is a list of names and values. Among them are all the words the model knows: so a value is looked for by
its name, and the others are not read.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

SEARCHED = 64 * 2**20
"""Bytes at the beginning of a file in which all of it stands."""
_TEXT = 8
"""The mark of a value that is a text."""


@dataclass(frozen=True, slots=True)
class Header:
    name: str = ""
    size: str = ""
    """Of its parameters, such as 135M."""
    template: str = ""
    """How a talk is put to it."""

    @property
    def takes_tools(self) -> bool:
        """One whose template does not speak of tools never hears of them."""
        return "tools" in self.template


def read(file: Path) -> Header:
    """What it says; nothing, if it does not. It is read from the disk: not on a loop."""
    try:
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return Header(
                _text(content, "general.basename") or _text(content, "general.name"),
                _text(content, "general.size_label"),
                _text(content, "tokenizer.chat_template"),
            )
    except (OSError, ValueError):
        return Header()


def _text(content: mmap.mmap, name: str) -> str:
    key = struct.pack("<Q", len(name)) + name.encode() + struct.pack("<I", _TEXT)
    at = content.find(key, 0, SEARCHED)
    if at < 0:
        return ""
    start = at + len(key) + 8
    length = int.from_bytes(content[start - 8 : start], "little")
    return content[start : start + length].decode(errors="replace")
