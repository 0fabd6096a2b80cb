"""Full-text search in talks: the words of a text with their places, queries, and excerpts with the matched words.

Words are compared without case and accents, as in `core.memory.memories`. A query has no syntax but quotes: any text is
a valid query. The blocks in the store consist of these words: a change here needs a migration that removes them, so
that they are written again.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import takewhile
from math import isfinite
from typing import NamedTuple

from roost.core.memory.memories import LONGEST_WORD, QUERY_CHARS, WORD, plain
from roost.core.talks.messages import Sender
from roost.core.values import checks
from roost.errors import Invalid

QUERY_WORDS = 32
"""Words of a query that are used."""
EXCERPT = 240
"""Characters of an excerpt."""
LEAD = 60
"""Characters of an excerpt before the first match."""
LIMIT = 20
MOST = 200

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Hit:
    """Message that contains all words of a query.

    `excerpt` is one line of its text; `ranges` are the places of the matched words in it, as (start, end) in
    characters.
    """

    talk_session_id: str
    title: str
    seq: int
    sender: Sender
    created: datetime
    excerpt: str
    ranges: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class SearchPage:
    """Hits in order, and the cursor of the next page; None if there is none.

    A page may have fewer hits than the limit, or none, although there is a next one: the time of a call is bounded.
    """

    hits: tuple[Hit, ...]
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Position of a search: messages of the talk before `seq`, then talks last used before it."""

    updated: float
    talk_id: str
    seq: int

    def encode(self) -> str:
        return f"{self.updated.hex()}~{self.seq}~{self.talk_id}"

    @classmethod
    def decode(cls, text: object) -> Place:
        refusal = Invalid(f"the cursor {checks.shown(text)} is not one of a search: use `page.cursor` as it was given")
        updated, _, rest = text.partition("~") if isinstance(text, str) and len(text) < 500 else ("", "", "")
        seq, _, talk_id = rest.partition("~")
        if not (seq.isascii() and seq.isdigit() and len(seq) < 16 and talk_id and talk_id.isprintable()):
            raise refusal
        try:
            place = cls(float.fromhex(updated), talk_id, int(seq))
        except (ValueError, OverflowError):
            raise refusal from None
        if not isfinite(place.updated):
            raise refusal
        return place


# --- words -------------------------------------------------------------------------------------------


class Token(NamedTuple):
    """Word as it is compared, and its place in the text."""

    word: str
    start: int
    end: int


def tokens(text: str) -> Iterator[Token]:
    """Yield the words of a text in order; scripts without spaces and symbols character by character."""
    for found in _RUN.finditer(text):
        run, start = found[0], found.start()
        if run.isascii():
            yield Token(run.lower()[:LONGEST_WORD], start, found.end())
        elif WORD.fullmatch(folded := plain(run)):
            yield Token(folded[:LONGEST_WORD], start, found.end())
        else:
            yield from _split(run, start)


def distinct_words(text: str) -> set[str]:
    return {token.word for token in tokens(text)}


_RUN = re.compile("[0-9A-Za-z\u0080-\U0010ffff]+")


def _split(run: str, start: int) -> Iterator[Token]:
    """Yield the words of a run with more than one, or with separators beyond ASCII."""
    folded: list[str] = []
    places: list[Range] = []
    for first, last in _clusters(run):
        piece = _folded_cluster(run[first:last])
        folded.append(piece)
        places += [(start + first, start + last)] * len(piece)
    for found in WORD.finditer("".join(folded)):
        yield Token(found[0][:LONGEST_WORD], places[found.start()][0], places[found.end() - 1][1])


def _clusters(run: str) -> Iterator[Range]:
    """Yield the places of characters with the marks that follow them."""
    first = 0
    for place in range(1, len(run) + 1):
        if place == len(run) or not _is_joined(run[place]):
            yield first, place
            first = place


@lru_cache(maxsize=10_000)
def _is_joined(character: str) -> bool:
    """Return whether a character is part of the one before it: a mark, or a vowel or final of Hangul."""
    return unicodedata.category(character)[0] == "M" or "\u1160" <= character <= "\u11ff"


@lru_cache(maxsize=10_000)
def _folded_cluster(cluster: str) -> str:
    return plain(cluster)


# --- queries -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Term:
    """Neighbouring words that a message must contain; the last one may be the prefix of a word."""

    words: tuple[str, ...]
    is_prefix: bool = False


_QUOTES = str.maketrans({"“": '"', "”": '"', "„": '"'})


def parsed(query: object) -> tuple[Term, ...]:
    """Return the terms of a query: words and quoted phrases. The last word is a prefix while it is being typed."""
    if not isinstance(query, str):
        raise Invalid(f"the query must be a text, not {type(query).__name__}")
    text = query[:QUERY_CHARS].translate(_QUOTES)
    parts = text.split('"')
    chunks = [chunk for number, part in enumerate(parts) for chunk in ([part] if number % 2 else part.split())]
    phrases = [tuple(token.word for token in tokens(chunk)) for chunk in chunks]
    is_typing = bool(chunks and parts[-1] and not text[-1].isspace() and phrases[-1])
    terms = [Term(words, is_typing and number == len(phrases)) for number, words in enumerate(phrases, start=1)]
    return _bounded([term for term in dict.fromkeys(terms) if term.words])


def _bounded(terms: list[Term]) -> tuple[Term, ...]:
    used: list[Term] = []
    room = QUERY_WORDS
    for term in terms:
        if room > 0:
            used.append(term if len(term.words) <= room else Term(term.words[:room]))
            room -= len(term.words)
    return tuple(used)


def patterns(terms: Sequence[Term]) -> list[str]:
    """Return what the words of a block must be LIKE; no word contains a wildcard."""
    found = [f"% {word} %" for term in terms for word in term.words[: -1 if term.is_prefix else None]]
    return [*dict.fromkeys(found), *(f"% {term.words[-1]}%" for term in terms if term.is_prefix)]


# --- matches -----------------------------------------------------------------------------------------


def matches(text: str, terms: Sequence[Term]) -> list[Range]:
    """Return the places of the words of all terms in the text; nothing unless it contains all of them."""
    if text.isascii():
        lower = text.lower()
        if not all(word in lower for term in terms for word in term.words):
            return []
    found = list(tokens(text))
    ranges: set[Range] = set()
    for term in terms:
        places = _places(found, term)
        if not places:
            return []
        ranges.update(places)
    return sorted(ranges)


def _places(found: list[Token], term: Term) -> list[Range]:
    words, size = term.words, len(term.words)
    starts = (n for n in range(len(found) - size + 1) if _is_word(found[n].word, words[0], term, size == 1))
    return [
        (found[n + k].start, found[n + k].end)
        for n in starts
        if all(_is_word(found[n + k].word, words[k], term, k == size - 1) for k in range(1, size))
        for k in range(size)
    ]


def _is_word(found: str, wanted: str, term: Term, is_last: bool) -> bool:
    return found.startswith(wanted) if is_last and term.is_prefix else found == wanted


def excerpt(text: str, ranges: Sequence[Range]) -> tuple[str, tuple[Range, ...]]:
    """Return one line of the text around the first match, and the places of the matches in it."""
    begin = _begin(text, ranges[0][0])
    end = _end(text, begin + EXCERPT, ranges[0][1])
    mark = "…" if begin else ""
    line = mark + _SPACE.sub(" ", text[begin:end]) + ("…" if end < len(text) else "")
    shift = len(mark) - begin
    inside = takewhile(lambda place: place[0] < end, ranges)
    return line, tuple((start + shift, min(stop, end) + shift) for start, stop in inside)


_SPACE = re.compile(r"\s")


def _begin(text: str, match: int) -> int:
    begin = max(0, match - LEAD)
    if begin == 0:
        return 0
    space = _SPACE.search(text, begin, match)
    return space.end() if space else begin


def _end(text: str, end: int, match: int) -> int:
    if end >= len(text):
        return len(text)
    space = max(text.rfind(" ", match, end), text.rfind("\n", match, end))
    return space if space > 0 else end
