"""Search in Roost's own docs, by the words of a question."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import roost

FOLDERS = {"guides": 1.0, "concepts": 0.8, "reference": 0.7}
"""Folders of the docs that are searched, with their weights; the rest is for contributors."""
GLOSSARY = "glossary.md", 0.9
BASE = "/docs/"
"""Path under which the server shows the docs."""
MOST = 3
EXCERPT = 900
"""Characters of an excerpt, about."""
USUAL = 100
"""Words of a usual section."""
TITLE = 3.0
"""Weight of a title whose words are all in the question."""
ENOUGH = 0.6
"""Part of a question, weighted by how rare its words are, that a section must contain."""

_HEADING = re.compile(r"^(#{1,3}) (.+)$")
_WORD = re.compile(r"[a-z][a-z_]+")
_BLOCK = re.compile(r"^```.*?^```$|^\S.*?(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_COMMON = re.compile(
    "the|and|for|are|can|you|how|what|when|where|why|who|does|did|with|that|this|from|have|has|will|would|could|should"
    "|about|into|your|tell|please|show|give|use|using|want|need|there|is|it|do|an|of|in|on|to|me|my|we|or|be|not|if|as"
    "|at|by|get|make|work|works|mean|means|way|roost"
)
_ENDINGS = re.compile(r"(?:ing|ies|ied|es|ed|s|ly)$")


@dataclass(frozen=True, slots=True)
class Section:
    """Section of a page of the docs."""

    page: str
    title: str
    text: str
    weight: float = 1.0
    words: Mapping[str, float] = field(repr=False, default_factory=dict)
    """How much of the section each word is."""
    title_words: frozenset[str] = field(repr=False, default=frozenset())

    @property
    def link(self) -> str:
        """Return a Markdown link to the section."""
        return f"[{self.title}]({BASE}{self.page}#{_anchor(self.title)})"

    @property
    def excerpt(self) -> str:
        """Return the first paragraphs and code blocks, without links to other pages, tables and output."""
        kept: list[str] = []
        for block in _BLOCK.findall(self.text):
            if kept and sum(map(len, kept)) + len(block) > EXCERPT:
                break
            if not block.startswith(("|", "#", "```text")):
                kept.append(block if block.startswith("```") else _LINK.sub(r"\1", block))
        return "\n\n".join(kept) if sum(map(len, kept)) <= 2 * EXCERPT else ""


def find(question: str, most: int = MOST) -> Sequence[Section]:
    """Return the sections that fit a question best; none if nothing fits well enough."""
    sections, rarity = _index()
    asked = {word for word in stems(question[:1_000]) if not _COMMON.fullmatch(word)}
    weight = sum(rarity.get(word, max(rarity.values(), default=0.0)) for word in asked)
    scored = [(score, section) for section in sections if (score := _score(section, asked, rarity, weight))]
    scored.sort(key=lambda found: (-found[0], found[1].page, found[1].title))
    return [section for _, section in scored[:most]]


def _score(section: Section, asked: set[str], rarity: Mapping[str, float], weight: float) -> float:
    known = [word for word in asked if word in section.words]
    if not known or sum(rarity[word] for word in known) < ENOUGH * weight:
        return 0.0
    named = section.title_words & asked
    share = len(named) / max(1, len(section.title_words))
    title = TITLE * share * sum(rarity[word] for word in named)
    return section.weight * (title + sum(rarity[word] * section.words[word] for word in known))


def stems(text: str) -> Iterator[str]:
    """Yield the words of a text without endings, so that "schedules" and "scheduling" are one word."""
    for word in _WORD.findall(text.casefold()):
        yield _ENDINGS.sub("", word) if len(word) > 4 and not _COMMON.fullmatch(word) else word


@lru_cache(maxsize=1)
def _index() -> tuple[Sequence[Section], Mapping[str, float]]:
    """Return all sections, and how rare each word is."""
    sections = [section for path, weight in _pages() for section in _sections(path, weight)]
    count = Counter(word for section in sections for word in section.words)
    return sections, {word: math.log(1.0 + len(sections) / number) for word, number in count.items()}


def folder() -> Path:
    """Return the folder of the docs: in the package, or beside the sources of a checkout."""
    package = Path(roost.__file__).parent
    inside = package / "docs"
    return inside if inside.is_dir() else package.parent.parent / "docs"


def _pages() -> Iterator[tuple[Path, float]]:
    base, (glossary, weight) = folder(), GLOSSARY
    yield base / glossary, weight
    for name, weight in FOLDERS.items():
        yield from ((path, weight) for path in sorted((base / name).glob("*.md")))


def _sections(path: Path, weight: float) -> Iterator[Section]:
    page = path.relative_to(folder()).with_suffix("").as_posix()
    title, lines, in_code = "", list[str](), False
    for line in [*path.read_text(encoding="utf-8").splitlines(), "# end"]:
        in_code ^= line.startswith("```")
        heading = None if in_code else _HEADING.match(line)
        if heading is None:
            lines.append(line)
            continue
        text = "\n".join(lines).strip()
        if title and text:
            yield Section(page, title, text, weight, _shares(f"{title} {text}"), _named(title))
        title, lines = heading[2].replace("`", ""), []


def _shares(text: str) -> dict[str, float]:
    """Return a number from 0 to 1 for each word: near 1 if a short text has it often."""
    counts = Counter(stems(text))
    slack = 0.5 + sum(counts.values()) / USUAL
    return {word: count / (count + slack) for word, count in counts.items()}


def _named(title: str) -> frozenset[str]:
    return frozenset(word for word in stems(title) if not _COMMON.fullmatch(word))


def _anchor(title: str) -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.casefold()).strip().replace(" ", "-")
