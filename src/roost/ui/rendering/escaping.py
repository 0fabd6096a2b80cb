"""Escaping of text for HTML, with control characters made visible."""

from __future__ import annotations

import html
import re

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Embeddings, overrides and isolates: they reorder the characters around them on the screen."""
_REPLACEMENT = "\ufffd"


def escape(text: str) -> str:
    """Escape a text for an element. Characters that reorder text are isolated and labelled, and stay copyable."""
    return _BIDI.sub(_isolated, html.escape(visible(text)))


def escape_attribute(text: str) -> str:
    """Escape a text for an attribute or for MathML, where no element can isolate a character."""
    return html.escape(_BIDI.sub(_REPLACEMENT, visible(text)))


def visible(text: str) -> str:
    """Replace control characters, except tabs and newlines, by the pictures that Unicode has for them."""
    return _CONTROLS.sub(_picture, text)


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code == 0x7F:
        return "\u2421"
    return chr(0x2400 + code) if 0 < code < 0x20 else _REPLACEMENT


def _isolated(found: re.Match[str]) -> str:
    return f'<bdi class="control" data-control="U+{ord(found[0]):04X}">{found[0]}</bdi>'
