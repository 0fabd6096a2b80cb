"""Segments of Markdown: parts that are parsed independently, because no text that follows can change them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from markdown_it.token import Token

from roost.ui.rendering.parser import Environment, Parser
from roost.ui.rendering.references import Definitions

LONGEST = 32_000
"""Characters of a segment. A longer one is divided at a line, unless it is a single code block."""
MOST_LINES = 1_500
"""Lines of a segment, with the same consequence."""
FREE_LINES = 3_000
CHARACTERS_PER_LINE = 16
"""Lines of an answer that are parsed: some in any case, and one per this number of characters. The rest is plain."""
_PLAIN = 8_000
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
    is_plain: bool = False


class Segmenter:
    """Divides a text that grows."""

    def __init__(self, parser: Parser) -> None:
        self._parser = parser
        self._lines = 0
        self.start = 0
        """Position at which the open segment begins."""

    def advance(self, source: str) -> tuple[list[Segment], Segment]:
        """Return the segments that cannot change any more since the last call, and the open one after them."""
        closed: list[Segment] = []
        while True:
            self.start = _after_blank_lines(source, self.start)
            found, is_open = self._next(source)
            last = found.pop() if is_open else None
            for segment in found:
                if self._is_over_budget and segment is not found[0]:
                    last = None  # from here on, the text is plain
                    break
                closed.append(segment)
                self.start += len(segment.source)
                self._lines += _lines(segment)
            if last and not (found and self._is_over_budget):
                return closed, last

    @property
    def _is_over_budget(self) -> bool:
        return self._lines > FREE_LINES + self.start // CHARACTERS_PER_LINE

    def _next(self, source: str) -> tuple[list[Segment], bool]:
        """Return one or more segments, and whether the last one is open."""
        if opening := _opening(source, self.start):
            return _fenced(source, opening)
        if self._is_over_budget:
            text = _whole_lines(source[self.start : self.start + _PLAIN])
            is_open = self.start + _PLAIN >= len(source)
            return [Segment(source[self.start :] if is_open else text, is_plain=True)], is_open
        window = _window(source, self.start)
        found = _segments(self._parser, window)
        if self.start + len(window) == len(source) and not _opening(found[-1].source):
            return found, True
        return found[:-1] or [parse(self._parser, _whole_lines(window))], False


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


def _opening(source: str, start: int = 0) -> re.Match[str] | None:
    """Match the complete first line of a code block that is not indented."""
    found = _FENCE.match(source, start)
    return found if found and found.end() - start <= min(LONGEST, _PLAIN) else None


def _fenced(source: str, opening: re.Match[str]) -> tuple[list[Segment], bool]:
    """Return a code block, and whether it or its last line is incomplete."""
    marks, info = (opening[1], opening[2]) if opening[1] else (opening[3], opening[4])
    closing = re.compile(rf"(?<=[\r\n]) {{0,3}}{marks[0]}{{{len(marks)},}}+[ \t]*+(\r\n?|\n|\Z)")
    end = closing.search(source, opening.end())
    code = source[opening.end() : end.start() if end else len(source)]
    fence = Fence(_normalized(info), _normalized(code), is_open=end is None)
    segment = Segment(source[opening.start() : end.end() if end else len(source)], fence=fence)
    return [segment], not (end and end[1])


def _window(source: str, start: int) -> str:
    """Return as much text as a segment may have."""
    window = source[start : start + LONGEST]
    if window.count("\n") + window.count("\r") <= MOST_LINES:
        return window
    last = next(islice(_NEWLINE.finditer(window), MOST_LINES - 1, None), None)
    return window[: last.end()] if last else window


def _whole_lines(text: str) -> str:
    """Return the text without an incomplete line at its end, unless it has no other."""
    return text[: max(text.rfind("\n"), text.rfind("\r")) + 1 or len(text)]


def _lines(segment: Segment) -> int:
    """Return the number of lines that were parsed; a line with many blocks counts as several."""
    if segment.is_plain or _opening(segment.source):
        return 0
    return max(segment.source.count("\n"), segment.source.count("\r"), len(segment.tokens) // 6)


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
