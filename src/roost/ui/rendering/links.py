"""Addresses that may become links."""

from __future__ import annotations

import re
from collections.abc import Iterator

from roost.ui.rendering.escaping import escape, escape_attribute

_ALLOWED = re.compile(r"(?:https?://|mailto:)[^\s\x00-\x20\x7f-\x9f]+|/docs/[\w/-]*(?:#[\w-]*)?", re.IGNORECASE)
"""Web pages, mail, and Roost's own docs."""
_BARE = re.compile(r"(?<![\w/])https?://[^\s<>\x00-\x20\x7f-\x9f]+", re.IGNORECASE)
_TRAILING = "?!.,:;*_~'\""
LONGEST = 4_000


def open_link(address: str, title: str = "") -> str:
    """Return the opening tag of a link, or of a span if the address must not be followed."""
    hint = f' title="{escape_attribute(title)}"' if title else ""
    if len(address) > LONGEST or not _ALLOWED.fullmatch(address):
        return f'<span class="no-link" title="{escape_attribute(address[:LONGEST])}">'
    return f'<a href="{escape_attribute(address)}"{hint} rel="noopener noreferrer nofollow" target="_blank">'


def close_link(address: str) -> str:
    return "</a>" if open_link(address).startswith("<a") else "</span>"


def with_bare_links(text: str) -> str:
    """Escape a text, and make links of the addresses in it."""
    return "".join(_parts(text)) if "://" in text else escape(text)


def _parts(text: str) -> Iterator[str]:
    end = 0
    for found in _BARE.finditer(text):
        address = _without_trailing_signs(found[0])
        if address.endswith("//"):
            continue
        yield escape(text[end : found.start()])
        yield f"{open_link(address)}{escape(address)}{close_link(address)}"
        end = found.start() + len(address)
    yield escape(text[end:])


def _without_trailing_signs(address: str) -> str:
    """Drop the punctuation of the sentence around an address, and a bracket that was opened before it."""
    surplus = address.count(")") - address.count("(")
    end = len(address)
    while end and (address[end - 1] in _TRAILING or (address[end - 1] == ")" and surplus > 0)):
        surplus -= address[end - 1] == ")"
        end -= 1
    return address[:end]
