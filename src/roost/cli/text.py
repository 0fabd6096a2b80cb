"""What others wrote, made safe for a terminal (S4): text stays text, and nothing in it moves the cursor."""

from __future__ import annotations

import re

from roost.core.checks import whole

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor, screen
    r"|\x1b[\]PX^_].*?(?:\x1b\\|\x07|$)"  # titles, links, the clipboard
    r"|\x1b[ -/]*[0-~]?",
    re.DOTALL,
)
_KEPT = "\n\t"
_BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def plain(text: str) -> str:
    """Without escape sequences, control characters and what turns the direction of text around."""
    text = _ESCAPES.sub("", whole(text)).replace("\r\n", "\n")
    return "".join(c for c in text if c in _KEPT or (ord(c) >= 32 and not 127 <= ord(c) < 160 and c not in _BIDI))


def line(text: str) -> str:
    """The same in one line."""
    return " ".join(plain(text).split())
