"""Text of others made safe for a terminal: no escape sequences, nothing that moves the cursor."""

from __future__ import annotations

import re

from roost.core.values.checks import whole

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor, screen
    r"|\x1b[\]PX^_].*?(?:\x1b\\|\x07|$)"  # titles, links, the clipboard
    r"|\x1b[ -/]*[0-~]?",
    re.DOTALL,
)
_KEPT = "\n\t"
_BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def sanitize(text: str) -> str:
    """Remove escape sequences, control characters and marks that change the direction of text."""
    text = _ESCAPES.sub("", whole(text)).replace("\r\n", "\n")
    return "".join(c for c in text if c in _KEPT or (ord(c) >= 32 and not 127 <= ord(c) < 160 and c not in _BIDI))


def single_line(text: str) -> str:
    """Sanitize a text and join it into one line."""
    return " ".join(sanitize(text).split())
