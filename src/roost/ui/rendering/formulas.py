"""LaTeX formulas as MathML."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import lru_cache
from xml.etree.ElementTree import Element

from latex2mathml.converter import Converter

from roost.ui.rendering.escaping import escape, escape_attribute

LONGEST = 2_000
"""Characters of a formula; a longer one is shown as its source."""
_DEEPEST = 40
_MACROS = re.compile(r"\\(?:[gex]?def|let|(?:re)?newcommand|providecommand|newenvironment|DeclareMathOperator)")
"""Definitions of macros: a few lines of them can expand to gigabytes."""
_ELEMENTS = re.compile(
    "m(ath|enclose|frac|i|multiscripts|n|o|over|padded|phantom|prescripts|root|row|space|sqrt|style|sub|subsup|sup|table|td"
    "|text|tr|under|underover)"
)
_KEYWORDS = re.compile(
    "accent|accentunder|columnalign|columnlines|display|displaystyle|fence|form|largeop|mathvariant|movablelimits|notation"
    "|rowlines|scriptlevel|separator|stretchy|symmetric"
)
_LENGTHS = re.compile("columnspacing|depth|height|linethickness|lspace|maxsize|minsize|rowspacing|rspace|voffset|width")
_KEYWORD = re.compile(r"[a-z0-9 -]{1,60}")
_LENGTH = re.compile(r"[+-]?(?:\d?(?:\.\d{1,6})?(?:em|ex)?|\d{0,2}(?:\.\d{1,6})?(?:px|pt))")
"""A length of a few lines at most, so that a formula cannot cover the page."""
_ALIGNED = re.compile(r"\\(begin|end)\{(?:aligned|gathered)\}")
"""Environments that the library knows only by another name."""
_ENTITY = re.compile(r"&#x[0-9A-Fa-f]{1,6};")
_BRACES = re.compile(r"(?<!\\)[{}]|\\left\b|\\right\b|\\begin\b|\\end\b")
_CHILDREN = dict.fromkeys(("mfrac", "mover", "mroot", "msub", "msup", "munder"), 2) | {"msubsup": 3, "munderover": 3}
_UNKNOWN = re.compile(r"\\[A-Za-z]")


def formula(latex: str, source: str, *, block: bool) -> str:
    """Return a formula as MathML, or its source as code if it is unknown, wrong or too long."""
    shown = mathml(latex, block=block) or f"<code>{escape(source)}</code>"
    kind = "block" if block else "inline"
    scrolling = ' tabindex="0" role="group" aria-label="Formula"' if block else ""
    return f'<span class="math math-{kind}" data-source="{escape_attribute(source)}"{scrolling}>{shown}</span>'


@lru_cache(maxsize=512)
def mathml(latex: str, *, block: bool) -> str | None:
    """Convert LaTeX, or return None if it cannot be converted completely."""
    if len(latex) > LONGEST or _MACROS.search(latex) or _depth(latex) > _DEEPEST:
        return None
    try:
        root = Converter(display="block" if block else "inline").convert_to_element(_ALIGNED.sub(r"\\\1{split}", latex))
        return "".join(_serialized(root))
    except Exception:  # wrong LaTeX raises errors of many kinds, from IndexError to the library's own
        return None


def _depth(latex: str) -> int:
    depth = deepest = 0
    for sign in _BRACES.findall(latex):
        depth += 1 if sign in ("{", r"\left", r"\begin") else -1
        deepest = max(deepest, depth)
    return deepest


def _serialized(element: Element) -> Iterator[str]:
    """Write the allowed elements and attributes only; the library's own serialization does not escape text."""
    if not _ELEMENTS.fullmatch(element.tag):
        raise ValueError(f"element {element.tag!r} is not allowed in a formula")
    if len(element) != _CHILDREN.get(element.tag, len(element)):
        raise ValueError(f"element {element.tag!r} is incomplete")
    attributes = "".join(f' {name}="{value}"' for name, value in element.attrib.items() if _is_allowed(name, value))
    yield f"<{element.tag}{attributes}>"
    yield _text(element.text)
    for child in element:
        yield from _serialized(child)
        yield _text(child.tail)
    yield f"</{element.tag}>"


def _is_allowed(name: str, value: str) -> bool:
    if _KEYWORDS.fullmatch(name):
        return bool(_KEYWORD.fullmatch(value))
    return bool(_LENGTHS.fullmatch(name) and _LENGTH.fullmatch(value))


def _text(text: str | None) -> str:
    if not text:
        return ""
    if _UNKNOWN.match(text) or text == "&":
        raise ValueError(f"{text!r} was not understood")
    return escape_attribute(_ENTITY.sub(lambda found: html.unescape(found[0]), text))
