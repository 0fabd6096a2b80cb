"""Memories: what an agent was asked to remember, and by which words it is found again."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from roost.core import checks
from roost.errors import Invalid, LimitReached

LONGEST_WORD = 64
"""Characters of a word that count; what is longer is found by its beginning."""
QUERY_WORDS = 64
QUERY_CHARS = 10_000
"""How much of a query is looked for: a whole letter may be one."""
RECALLED = 10
"""How many are recalled unless told otherwise."""


@dataclass(frozen=True, slots=True)
class Memory:
    """One thing that an agent remembers, under a key of its own."""

    key: str
    text: str
    created: datetime


@dataclass(frozen=True, slots=True)
class Remember:
    """An effect of a turn: have the agent remember the text under the key, or with no text forget what is there."""

    address: str
    key: str
    text: str | None
    created: float


def check_text(text: object, most: int) -> str:
    checked = checks.text(text, "what is remembered", most=4 * most)
    if len(checked) > most:
        raise Invalid(
            f"what is remembered is too long: {len(checked):,} characters, and {most:,} are allowed; keep the gist of"
            " it, or split it"
        )
    return checked


def check_room(count: int, most: int) -> None:
    """Whether there is room for one more beside so many."""
    if count >= most:
        raise LimitReached(
            f"an agent may remember {most:,} things, and this one does: have it forget some first, or remember under a"
            " key that is there already"
        )


# --- words -------------------------------------------------------------------------------------------


def words(text: str) -> tuple[str, ...]:
    """Its words, each once, as they are compared: without case and accents.

    Scripts that are written without spaces are taken character by character, and so are symbols such as emoji. The
    index in the store is made of these: a change here needs a migration that makes it anew.
    """
    plain = text.lower() if text.isascii() else _plain(text)
    return tuple(dict.fromkeys(word[:LONGEST_WORD] for word in _WORD.findall(plain)))


def asked(query: object) -> tuple[str, ...] | None:
    """The words to look for; None: nothing is asked for, and the newest are wanted. Any text will do."""
    if not isinstance(query, str):
        raise Invalid(f"the query must be a text, not {type(query).__name__}")
    return words(query[:QUERY_CHARS])[:QUERY_WORDS] if query.strip() else None


def score(text: str, wanted: tuple[str, ...]) -> int:
    """How much of the query is in it: the characters of those of its words that are."""
    return sum(map(len, set(wanted).intersection(words(text))))


_WORD = re.compile("[0-9a-z\u0080-\U0010ffff]+")
_BEYOND_ASCII = re.compile("[\u0080-\U0010ffff]")
_ACCENT = re.compile("[\u0300-\u036f\u3099\u309a\ufe00-\ufe0f]")
_ALONE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, kana and Han: no spaces between words."""


def _plain(text: str) -> str:
    apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFC", _BEYOND_ASCII.sub(lambda found: _as_compared(found[0]), apart))


@lru_cache(maxsize=10_000)
def _as_compared(character: str) -> str:
    """A letter, digit or mark as it is; a space for what parts words; nothing for accents and what is not seen."""
    kind = unicodedata.category(character)
    if _ACCENT.match(character) or kind == "Cf":
        return ""
    if kind == "So" or (kind[0] in "LNM" and _ALONE.match(character)):
        return f" {character} "
    return character if kind[0] in "LNM" else " "
