"""The shown text is the text of a reference rendering of CommonMark, character by character but for white space."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from roost.ui.rendering.escaping import visible
from roost.ui.rendering.markdown import render
from tests.ui.rendering.html_reader import BLOCKS, words
from tests.ui.rendering.pieces import PIECES

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.md"))
REFERENCE = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
EXTENSIONS = ("$", "\\(", "\\[", "- [")
"""Signs of what CommonMark does not have: formulas and tasks."""
PLAIN_PIECES = [piece for piece in PIECES if not piece.startswith(EXTENSIONS)]


class ReferenceReader(HTMLParser):
    """Collects the text; an image has its alt text, or its address."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self._links = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.text += "\n" * (tag in BLOCKS)
        self._links += tag == "a"
        if tag == "img":
            values = dict(attrs)
            self.text += values["alt"] or ("" if self._links else values["src"] or "")

    def handle_endtag(self, tag: str) -> None:
        self._links -= tag == "a"

    def handle_data(self, data: str) -> None:
        self.text += data


def reference_words(source: str) -> list[str]:
    reader = ReferenceReader()
    reader.feed(REFERENCE.render(source))
    reader.close()
    return visible(reader.text).split()


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: str(path.stem))
def test_the_corpus_reads_like_the_reference(path: Path) -> None:
    source = path.read_text()
    assert words(render(source)) == reference_words(source)


@pytest.mark.parametrize("size", [200_000, pytest.param(1_000_000, marks=pytest.mark.soak)])
def test_a_long_text_reads_like_the_reference(size: int) -> None:
    source = "\n\n".join(path.read_text() for path in CORPUS)
    source = "\n\n".join([source] * (size // len(source) + 1))
    assert words(render(source)) == reference_words(source)


def is_plain_commonmark(source: str) -> bool:
    """Return False for tasks, and for a fence that the reference reads as the head of a table."""
    return not re.search(r"\[ \]|(```|~~~)[^\r\n]*\|", source)


@settings(max_examples=200, deadline=None)
@example("- a\n  - b")
@given(st.lists(st.sampled_from(PLAIN_PIECES), max_size=40).map("".join).filter(is_plain_commonmark))
def test_whatever_is_written_reads_like_the_reference(source: str) -> None:
    assert words(render(source)) == reference_words(source)
