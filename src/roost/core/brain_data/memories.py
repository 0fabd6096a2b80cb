"""Memories: texts that an agent remembers, and the words that find them."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime

from roost.core.values import checks
from roost.errors import Invalid, LimitReached

LONGEST_WORD = 64
"""Indexed characters of a word; a longer word is found by its start."""
QUERY_WORDS = 64
QUERY_CHARS = 10_000
"""Characters of a query that are used; a whole mail may be a query."""
MOST_CACHED = 20_000
FIRST_BEYOND_ASCII = 128
RECALLED = 10
"""Default number of memories that are recalled."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Text that an agent remembers under a key."""

    key: str
    text: str
    created: datetime


@dataclass(frozen=True, slots=True)
class Remember:
    """Effect of a turn: store the text under the key, or delete the key if there is no text."""

    address: str
    key: str
    text: str | None
    created: float


def check_text(text: object, most: int) -> str:
    checked = checks.text(text, "the memory", most=4 * most)
    if len(checked) > most:
        raise Invalid(
            f"the memory is too long: {len(checked):,} characters, and {most:,} are allowed; shorten it or split it"
        )
    return checked


def check_room(count: int, most: int) -> None:
    """Raise LimitReached if an agent with `count` memories cannot store another."""
    if count >= most:
        raise LimitReached(
            f"the agent has {most:,} memories, which is the limit: have it forget some first, or reuse a key"
        )


# --- words -------------------------------------------------------------------------------------------


def words(text: str) -> tuple[str, ...]:
    """Return the distinct words of a text, without case and accents.

    Scripts without spaces are split into characters, and so are symbols such as emoji. The index in the store consists
    of these words: a change here needs a migration that rebuilds it.
    """
    folded = text.lower() if text.isascii() else plain(text)
    return tuple(dict.fromkeys(word[:LONGEST_WORD] for word in WORD.findall(folded)))


def asked(query: object) -> tuple[str, ...] | None:
    """Return the words of a query; None if it is empty, which asks for the newest memories."""
    if not isinstance(query, str):
        raise Invalid(f"the query must be a text, not {type(query).__name__}")
    return words(query[:QUERY_CHARS])[:QUERY_WORDS] if query.strip() else None


def score(text: str, wanted: tuple[str, ...]) -> int:
    """Return the score of a text: the number of characters of the query words that it contains."""
    return sum(map(len, set(wanted).intersection(words(text))))


WORD = re.compile("[0-9a-z\u0080-\U0010ffff]+")
_ACCENT = re.compile("[\u0300-\u036f\u3099\u309a\ufe00-\ufe0f]")
_ALONE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, kana and Han: no spaces between words."""


def plain(text: str) -> str:
    """Return a text as it is compared: without case and accents, with spaces around what is a word by itself."""
    apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFC", apart.translate(_COMPARED))


class _Compared(dict[int, str]):
    """Characters as they are compared, for `str.translate`; a bounded cache."""

    def __missing__(self, code: int) -> str:
        if len(self) >= MOST_CACHED:
            self.clear()
        found = self[code] = chr(code) if code < FIRST_BEYOND_ASCII else _as_compared(chr(code))
        return found


_COMPARED = _Compared()


def _as_compared(character: str) -> str:
    """Return a letter, digit or mark as it is, a space for a separator, nothing for accents and the invisible."""
    kind = unicodedata.category(character)
    if _ACCENT.match(character) or kind == "Cf":
        return ""
    if kind == "So" or (kind[0] in "LNM" and _ALONE.match(character)):
        return f" {character} "
    return character if kind[0] in "LNM" else " "
