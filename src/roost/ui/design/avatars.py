"""Avatars of agents and profiles, generated from their names."""

from __future__ import annotations

from html import escape
from zlib import crc32

HUES = 12


def avatar(name: str, size: str = "2rem") -> str:
    """Return a round picture with the first letters of a name, as HTML. The same name has the same colour."""
    return (
        f'<span class="roost-avatar" aria-hidden="true" style="--hue: {hue(name)}; --size: {size}">'
        f"{escape(initials(name))}</span>"
    )


def hue(name: str) -> int:
    """Return the hue of a name, in degrees."""
    return crc32(name.encode(errors="replace")) % HUES * (360 // HUES)


def initials(name: str) -> str:
    """Return up to two letters: of the first two words, or the first letter of one."""
    words = "".join(letter if letter.isalnum() else " " for letter in name).split()
    return "".join(word[0] for word in words[:2]).upper() or "?"
