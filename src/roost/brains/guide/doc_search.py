"""Search in Roost's own docs, by the words of a question."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from roost import bundled_docs
from roost.bundled_docs import Section

MOST = 3
USUAL = 100
"""Words of a usual section."""
TITLE = 3.0
"""Weight of a title whose words are all in the question."""
ENOUGH = 0.6
"""Part of a question, weighted by how rare its words are, that a section must contain."""

_WORD = re.compile(r"[a-z][a-z_]+")
_COMMON = re.compile(
    "the|and|for|are|can|you|how|what|when|where|why|who|does|did|with|that|this|from|have|has|will|would|could|should"
    "|about|into|your|tell|please|show|give|use|using|want|need|there|is|it|do|an|of|in|on|to|me|my|we|or|be|not|if|as"
    "|at|by|get|make|work|works|mean|means|way|roost"
)
_ENDINGS = re.compile(r"(?:ing|ies|ied|es|ed|s|ly)$")


@dataclass(frozen=True, slots=True)
class _Indexed:
    """Section with its words."""

    section: Section
    words: Mapping[str, float]
    """Share of the section that each word is."""
    title_words: frozenset[str]


def find(question: str, most: int = MOST) -> Sequence[Section]:
    """Return the sections that fit a question best; none if nothing fits well enough."""
    index, rarity = _index()
    asked = {word for word in stems(question[:1_000]) if not _COMMON.fullmatch(word)}
    weight = sum(rarity.get(word, max(rarity.values(), default=0.0)) for word in asked)
    scored = [(score, one.section) for one in index if (score := _score(one, asked, rarity, weight))]
    scored.sort(key=lambda found: (-found[0], found[1].page, found[1].title))
    return [section for _, section in scored[:most]]


def _score(one: _Indexed, asked: set[str], rarity: Mapping[str, float], weight: float) -> float:
    known = [word for word in asked if word in one.words]
    if not known or sum(rarity[word] for word in known) < ENOUGH * weight:
        return 0.0
    named = one.title_words & asked
    share = len(named) / max(1, len(one.title_words))
    title = TITLE * share * sum(rarity[word] for word in named)
    return one.section.weight * (title + sum(rarity[word] * one.words[word] for word in known))


def stems(text: str) -> Iterator[str]:
    """Yield the words of a text without endings, so that "schedules" and "scheduling" are one word."""
    for word in _WORD.findall(text.casefold()):
        yield _ENDINGS.sub("", word) if len(word) > 4 and not _COMMON.fullmatch(word) else word


@lru_cache(maxsize=1)
def _index() -> tuple[Sequence[_Indexed], Mapping[str, float]]:
    """Return all sections with their words, and how rare each word is."""
    sections = [section for doc in bundled_docs.pages() for section in doc.sections() if section.text]
    index = [_Indexed(one, _shares(f"{one.title} {one.text}"), _named(one.title)) for one in sections]
    count = Counter(word for one in index for word in one.words)
    return index, {word: math.log(1.0 + len(index) / number) for word, number in count.items()}


def _shares(text: str) -> dict[str, float]:
    """Return a number from 0 to 1 for each word: near 1 if a short text has it often."""
    counts = Counter(stems(text))
    slack = 0.5 + sum(counts.values()) / USUAL
    return {word: count / (count + slack) for word, count in counts.items()}


def _named(title: str) -> frozenset[str]:
    return frozenset(word for word in stems(title) if not _COMMON.fullmatch(word))
