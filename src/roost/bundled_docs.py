"""Docs for users, as parts of the package: pages and their sections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDERS = {"": 0.9, "guides": 1.0, "concepts": 0.8, "reference": 0.7}
"""Folders of the docs for users, with their weights in a search."""
TOP = ("start.md", "troubleshooting.md", "glossary.md")
"""Pages outside of these folders for users."""
BASE = "/docs/"
"""Path under which the server shows the docs."""
EXCERPT = 900
"""Characters of an excerpt, about."""

_HEADING = re.compile(r"#{1,3} ")
_LAST = "# "
"""Heading after the last line of a page."""
_BLOCK = re.compile(r"^```.*?^```$|^\S.*?(?=\n\n|\Z)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")


@dataclass(frozen=True, slots=True)
class Section:
    """Section of a page of the docs."""

    page: str
    heading: str
    """As in the source, with its signs."""
    text: str
    weight: float = 1.0

    @property
    def source(self) -> str:
        return f"{self.heading}\n\n{self.text}"

    @property
    def title(self) -> str:
        return self.heading.lstrip("# ").replace("`", "")

    @property
    def anchor(self) -> str:
        """Return the anchor of the heading, as GitHub makes it."""
        return re.sub(r"[^\w\- ]", "", self.title.casefold()).strip().replace(" ", "-")

    @property
    def link(self) -> str:
        """Return a Markdown link to the section."""
        return f"[{self.title}]({BASE}{self.page}#{self.anchor})"

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


@dataclass(frozen=True, slots=True)
class Doc:
    """Page of the docs."""

    name: str
    path: Path
    weight: float

    @property
    def title(self) -> str:
        return self.path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")

    def sections(self) -> Iterator[Section]:
        """Yield the sections of the page, in order: what follows a heading, up to the next one."""
        heading, lines, in_code = "", list[str](), False
        for line in [*self.path.read_text(encoding="utf-8").splitlines(), _LAST]:
            in_code ^= line.startswith("```")
            if in_code or not _HEADING.match(line):
                lines.append(line)
                continue
            if heading:
                yield Section(self.name, heading, "\n".join(lines).strip(), self.weight)
            heading, lines = line, []


def pages() -> Iterator[Doc]:
    """Yield the pages for users; decisions and architecture are for contributors."""
    base = folder()
    for name, weight in FOLDERS.items():
        paths = sorted((base / name).glob("*.md")) if name else [base / page for page in TOP]
        yield from (Doc(path.relative_to(base).with_suffix("").as_posix(), path, weight) for path in paths)


def folder() -> Path:
    """Return the folder of the docs: in the package, or beside the sources of a checkout."""
    package = Path(__file__).parent
    inside = package / "docs"
    return inside if inside.is_dir() else package.parent.parent / "docs"
