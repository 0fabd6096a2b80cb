"""Segments of Markdown: parts that are parsed independently, because no text that follows can change them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from markdown_it.token import Token

from roost.ui.rendering.parser import Environment, Parser
from roost.ui.rendering.references import Definitions

LONGEST = 32_000
"""Characters of a segment. A longer one is divided at a line, unless it is a single code block."""
_NEWLINE = re.compile(r"\r\n?|\n")
_BLANK_LINES = re.compile(r"(?:[ \t]*+(?:\r\n?|\n))++")
_FENCE = re.compile(r"(?:(`{3,}+)([^`\r\n]*+)|(~{3,}+)([^\r\n]*+))(?:\r\n?|\n)")
_FINAL = frozenset({"fence", "heading_open", "hr", "math_block"})
"""Blocks that end with a line of their own: the next line is never a part of them."""


@dataclass(frozen=True)
class Fence:
    """A code block that is a segment of its own."""

    info: str
    code: str
    is_open: bool


@dataclass(frozen=True)
class Segment:
    source: str
    tokens: list[Token] = field(default_factory=list)
    definitions: Definitions = field(default_factory=dict)
    fence: Fence | None = None


@dataclass(frozen=True)
class Split:
    """Segments that cannot change any more, the open one after them, and where that begins."""

    closed: list[Segment]
    open: Segment
    open_from: int


def split(parser: Parser, source: str, start: int = 0) -> Split:
    """Split the source from a place where a segment begins."""
    closed: list[Segment] = []
    while True:
        start = _after_blank_lines(source, start)
        if opening := _FENCE.match(source, start):
            segment, is_final = _fenced(source, opening)
            if not is_final:
                return Split(closed, segment, start)
            found = [segment]
        else:
            found = _segments(parser, source[start : start + LONGEST])
            open_segment = found.pop()
            if start + LONGEST >= len(source) and not _FENCE.match(open_segment.source):
                return Split(closed + found, open_segment, start + sum(len(one.source) for one in found))
            if not found:
                found = [parse(parser, _whole_lines(source, start))]
        closed += found
        start += sum(len(one.source) for one in found)


def parse(parser: Parser, source: str) -> Segment:
    """Parse a text as one segment."""
    env: Environment = {"references": {}}
    tokens = parser.parse_blocks(_normalized(source), env)
    return Segment(source, tokens, env["references"])


def _after_blank_lines(source: str, start: int) -> int:
    blank = _BLANK_LINES.match(source, start)
    return blank.end() if blank else start


def _normalized(text: str) -> str:
    return (_NEWLINE.sub("\n", text) if "\r" in text else text).replace("\0", "\ufffd")


def _fenced(source: str, opening: re.Match[str]) -> tuple[Segment, bool]:
    """Return a code block, and whether its last line is complete."""
    marks, info = (opening[1], opening[2]) if opening[1] else (opening[3], opening[4])
    closing = re.compile(rf"(?<=[\r\n]) {{0,3}}{marks[0]}{{{len(marks)},}}+[ \t]*+(\r\n?|\n|\Z)")
    end = closing.search(source, opening.end())
    code = source[opening.end() : end.start() if end else len(source)]
    fence = Fence(_normalized(info), _normalized(code), is_open=end is None)
    return Segment(source[opening.start() : end.end() if end else len(source)], fence=fence), bool(end and end[1])


def _whole_lines(source: str, start: int) -> str:
    """Return as many lines as a segment may have, or a part of a line that is longer."""
    window = source[start : start + LONGEST]
    end = max(window.rfind("\n"), window.rfind("\r")) + 1
    return window[: end or len(window)]


def _segments(parser: Parser, window: str) -> list[Segment]:
    """Parse a text, and divide it where the part before can no longer change."""
    whole = parse(parser, window)
    cuts = list(_cuts(whole.tokens, _normalized(window).split("\n")))
    if not cuts:
        return [whole]
    ends = [0, *(found.end() for found in _NEWLINE.finditer(window))]
    lines = [0, *(line for line, _ in cuts)]
    offsets = [*(ends[line] for line in lines), len(window)]
    tokens = [0, *(number for _, number in cuts), len(whole.tokens)]
    definitions: list[Definitions] = [{} for _ in lines]
    for label, definition in whole.definitions.items():
        definitions[bisect_right(lines, definition["map"][0]) - 1][label] = definition
    return [
        Segment(window[offsets[n] : offsets[n + 1]], whole.tokens[tokens[n] : tokens[n + 1]], definitions[n])
        for n in range(len(lines))
    ]


def _cuts(tokens: list[Token], lines: list[str]) -> Iterator[tuple[int, int]]:
    """Yield the line and the token of each block whose start is certain, whatever follows.

    Its first line must be complete. The text before must end with a blank line, with a block that ends with a line of
    its own, or because a fence begins.
    """
    before: Token | None = None
    for number, token in enumerate(tokens):
        if token.level or token.nesting < 0 or not token.map:
            continue
        line = token.map[0]
        if before and before.map and line < len(lines) - 1:
            follows_final = before.type in _FINAL and before.map[1] == line
            if follows_final or token.type == "fence" or not lines[line - 1].strip(" \t"):
                yield line, number
        before = token
