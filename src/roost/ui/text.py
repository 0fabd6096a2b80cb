"""Escaping of text for pages: titles, Markdown without images, errors as sentences."""

from __future__ import annotations

import re
import textwrap
from functools import lru_cache

from markdown_it import MarkdownIt

from roost.errors import public

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_SHORTCODE = re.compile(r":(?=[\w+-])")
_ARROW = re.compile(r"(?<!\S)(<->|->|<-|--|>=|<=|~=)(?!\S)")
_JOINER = "\u2060"

_EXTENDED = re.compile(r"\[\^|\$|:::")
_BLOCKS = MarkdownIt("commonmark").enable("table").disable(["inline", "text_join"])
"""Parses blocks only: inline parsing is slow on hostile input."""


def plain(text: str) -> str:
    """Escape a title or name for Streamlit's Markdown, so that it reads as typed.

    An invisible joiner breaks patterns that Streamlit replaces after unescaping: `:material/home:`, `:smile:`, ` -> `.
    """
    text = _SHORTCODE.sub(":" + _JOINER, " ".join(text.split()))
    text = _ARROW.sub(lambda found: found[0][0] + _JOINER + found[0][1:], text)
    return _PUNCTUATION.sub(r"\\\1", text)


def sentence(problem: object) -> str:
    """Return an error or notice as a sentence: with a capital letter and a full stop."""
    text = " ".join((public(problem) if isinstance(problem, Exception) else str(problem)).split())
    if text.partition(" ")[0].strip(",:;.!?").isalpha():  # not a file name, for example
        text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def as_sentence(problem: object) -> str:
    """Return an error or notice as a sentence, escaped for Streamlit's Markdown."""
    return plain(sentence(problem))


def verbatim(text: str) -> str:
    """Protect a text from `st.text`, which strips and dedents it, by joiners at both ends."""
    return text if _trimmed(text) == text else f"{_JOINER}{text}{_JOINER}"


def _trimmed(text: str) -> str:
    return textwrap.dedent(text).strip()


@lru_cache(maxsize=256)
def defused(markdown: str) -> str:
    """Turn images into links, so that the browser fetches nothing from other hosts.

    An invisible joiner separates `!` from `[`; a backslash could be escaped by a preceding one. Fenced code is
    unchanged, unless the text uses extensions with which Streamlit may parse blocks differently (footnotes, formulas,
    directives): when in doubt it is not code.
    """
    last = len(markdown) if "]:" in markdown else markdown.rfind("](")
    if markdown.find("![", 0, max(last, 0)) < 0:
        return markdown  # an image needs a URL, inline or in a definition
    markdown = _trimmed(markdown)  # as Streamlit does, which may change the blocks
    code = set() if _EXTENDED.search(markdown) else _fenced_lines(markdown)
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", markdown)
    return "".join(line if number in code else line.replace("![", f"!{_JOINER}[") for number, line in enumerate(lines))


def _fenced_lines(markdown: str) -> set[int]:
    fences = [token.map for token in _BLOCKS.parse(markdown) if token.type == "fence" and token.map]
    return {number for first, end in fences for number in range(first, end)}
