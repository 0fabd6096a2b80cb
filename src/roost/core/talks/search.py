"""Full-text search in talks: the words of a text with their places, queries, and excerpts with the matched words.

Words are compared without case and accents, as in `core.brain_data.memories`. A query has no syntax but quotes: any
text is a valid query. The blocks in the store consist of these words: a change here needs a migration that removes
them, so that they are written again.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import accumulate, pairwise, takewhile
from math import isfinite

from roost.core.brain_data.memories import LONGEST_WORD, QUERY_CHARS, WORD, plain
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
    characters: in order, none overlaps another.
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


class Folded:
    """Text as it is compared, with the way back to places in the original.

    It is folded piece by piece. A place is found by its piece, of which only the characters have to be looked at.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._pieces: list[int] = [0]
        """Start of each piece in the text."""
        self._places: list[int] = [0]
        """Start of each piece in the folded text."""
        self.text = text.lower() if text.isascii() else self._fold()

    def _fold(self) -> str:
        self._pieces = _cuts(self._text)
        folded = [plain(self._text[a:b]) for a, b in pairwise([*self._pieces, len(self._text)])]
        self._places = list(accumulate(map(len, folded), initial=0))[:-1]
        return "".join(folded)

    def words(self) -> Iterator[str]:
        return (found[:LONGEST_WORD] for found in WORD.findall(self.text))

    def original(self, start: int, end: int) -> Range:
        """Return the place in the original of a range in the folded text that is not empty."""
        if self._text.isascii():
            return start, end
        return self._character(start)[0], self._character(end - 1)[1]

    def _character(self, place: int) -> Range:
        """Return the place of the original character that became the folded one at this place."""
        number = bisect_right(self._places, place) - 1
        begin, left = self._pieces[number], place - self._places[number]
        end = self._pieces[number + 1] if number + 1 < len(self._pieces) else len(self._text)
        for first, last in _clusters(self._text[begin:end]):
            left -= len(_folded_cluster(self._text[begin + first : begin + last]))
            if left < 0:
                return begin + first, begin + last
        return max(begin, end - 1), end


def distinct_words(text: str) -> set[str]:
    return set(Folded(text).words())


PIECE = 1_000
"""Characters that are folded at once."""


def _cuts(text: str) -> list[int]:
    """Return where the pieces of a text begin: none with a mark that belongs to the character before it."""
    cuts = [0]
    while (cut := cuts[-1] + PIECE) < len(text):
        joined = takewhile(_is_joined, text[cut : cut + PIECE])
        cuts.append(min(len(text), cut + sum(1 for _ in joined)))
    return cuts


def _clusters(piece: str) -> Iterator[Range]:
    """Yield the places of characters with the marks that follow them."""
    first = 0
    for place in range(1, len(piece) + 1):
        if place == len(piece) or not _is_joined(piece[place]):
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
    phrases = [tuple(Folded(chunk).words()) for chunk in chunks]
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


class Matcher:
    """Terms of a query, ready to be compared with many messages."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self._words = tuple(dict.fromkeys(word for term in terms for word in term.words))
        self._expressions = [_expression(term) for term in terms]

    def excerpt(self, text: str) -> tuple[str, tuple[Range, ...]] | None:
        """Return one line of the text around the first match, and the places of the matches in it.

        None if the text does not contain all terms.
        """
        folded = Folded(text)
        if not all(word in folded.text for word in self._words):
            return None
        found = [expression.search(folded.text) for expression in self._expressions]
        places = [match.span() for match in found if match is not None]
        return None if len(places) < len(found) else self._around(text, folded, min(places))

    def _around(self, text: str, folded: Folded, place: Range) -> tuple[str, tuple[Range, ...]]:
        first, end = place[0], place[0] + FOLDED_EXCERPT
        near = {
            match.span()
            for expression in self._expressions
            for match in expression.finditer(folded.text, first, end)
            if match.end() < end or end >= len(folded.text)
        }
        chosen = sorted(near | {place})[:MOST_RANGES]
        return _line(text, _disjoint(folded.original(*one) for one in chosen))


FOLDED_EXCERPT = 2 * EXCERPT
MOST_RANGES = 50
_LETTER = WORD.pattern.removesuffix("+")
_OTHER = _LETTER.replace("[", "[^", 1)


def _expression(term: Term) -> re.Pattern[str]:
    """Return the expression that finds the whole words of a term in a folded text."""
    *before, last = (word if len(word) < LONGEST_WORD else f"{word}{_LETTER}*" for word in term.words)
    end = f"{last}{_LETTER}*" if term.is_prefix else f"{last}(?!{_LETTER})"
    return re.compile(f"(?<!{_LETTER}){f'{_OTHER}+'.join([*before, end])}")


def _disjoint(ranges: Iterable[Range]) -> list[Range]:
    """Return sorted ranges, with those that overlap as one."""
    found: list[Range] = []
    for start, end in ranges:
        if found and start < found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def _line(text: str, ranges: Sequence[Range]) -> tuple[str, tuple[Range, ...]]:
    """Return one line of the text around the first range, and the ranges in it."""
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
