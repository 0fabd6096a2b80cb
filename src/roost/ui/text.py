"""Words made fit to be shown: titles as they are, Markdown without pictures, errors as sentences."""

from __future__ import annotations

import re
import textwrap
from functools import lru_cache

from markdown_it import MarkdownIt

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_SHORTCODE = re.compile(r":(?=[\w+-])")
_ARROW = re.compile(r"(?<!\S)(<->|->|<-|--|>=|<=|~=)(?!\S)")
_JOINER = "\u2060"

_EXTENDED = re.compile(r"\[\^|\$|:::")
_BLOCKS = MarkdownIt("commonmark").enable("table").disable(["inline", "text_join"])
"""Looks at blocks alone: what stands in a line takes it long, if it is made for that."""


def plain(text: str) -> str:
    """A title or name for a place where Streamlit renders Markdown; it reads as it was typed.

    An invisible joiner breaks what Streamlit looks for after unescaping: `:material/home:`, `:smile:`, ` -> `.
    """
    text = _SHORTCODE.sub(":" + _JOINER, " ".join(text.split()))
    text = _ARROW.sub(lambda found: found[0][0] + _JOINER + found[0][1:], text)
    return _PUNCTUATION.sub(r"\\\1", text)


def sentence(problem: object) -> str:
    """An error or notice as people read it: with a capital at the beginning and a full stop."""
    text = " ".join(str(problem).split())
    if text.partition(" ")[0].strip(",:;.!?").isalpha():  # and not the name of a file, say
        text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def told(problem: object) -> str:
    """The same for a place where Streamlit renders Markdown."""
    return plain(sentence(problem))


def verbatim(text: str) -> str:
    """A text for `st.text`, which trims it and takes off common indentation: joiners at its ends prevent that."""
    return text if _trimmed(text) == text else f"{_JOINER}{text}{_JOINER}"


def _trimmed(text: str) -> str:
    return textwrap.dedent(text).strip()


@lru_cache(maxsize=256)
def defused(markdown: str) -> str:
    """The same Markdown with pictures turned into links, so that no browser fetches anything by itself.

    An invisible joiner parts `!` from `[`; a backslash would be undone by one that stands before it.
    Fenced code stays as it is, unless the text uses an extension by which Streamlit may see the
    blocks otherwise than we do (footnotes, formulas, directives): when in doubt it is no code.
    """
    last = len(markdown) if "]:" in markdown else markdown.rfind("](")
    if markdown.find("![", 0, max(last, 0)) < 0:
        return markdown  # a picture needs an address, after it or in a definition
    markdown = _trimmed(markdown)  # as Streamlit does itself: it may turn code into other blocks
    code = set() if _EXTENDED.search(markdown) else _fenced_lines(markdown)
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", markdown)
    return "".join(line if number in code else line.replace("![", f"!{_JOINER}[") for number, line in enumerate(lines))


def _fenced_lines(markdown: str) -> set[int]:
    fences = [token.map for token in _BLOCKS.parse(markdown) if token.type == "fence" and token.map]
    return {number for first, end in fences for number in range(first, end)}
