"""The Markdown dialect of answers, with a bounded cost."""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_inline import StateInline, image, link
from markdown_it.token import Token

from roost.ui.rendering.math_rules import add_math

Environment = MutableMapping[str, Any]
"""Environment that markdown-it keeps beside the tokens, by name."""

_DEEPEST = 24
_STEPS_PER_CHARACTER = 2
_FREE_STEPS = 2_000
_STEPS_PER_LINK = 10
_FEW_COLUMNS = 4
_FREE_CELLS = 1_000
_BLANK_LINE = re.compile(r"\n[ \t]*(?:\n|\Z)")


class TooExpensive(Exception):
    """The text needs too many steps of the parser."""


class _BoundedInline(ParserInline):
    """Inline parser that counts its lookaheads, which nested brackets can make slow."""

    def __init__(self) -> None:
        super().__init__()
        self._steps = 0
        self.ruler.at("image", self._image)
        self.ruler.at("link", self._link)

    def skipToken(self, state: StateInline) -> None:  # noqa: N802  # the name of markdown-it
        self._count(1)
        super().skipToken(state)

    def _count(self, steps: int) -> None:
        self._steps -= steps
        if self._steps < 0:
            raise TooExpensive

    def _image(self, state: StateInline, silent: bool) -> bool:
        if not state.src.startswith("![", state.pos):
            return False
        self._count(_STEPS_PER_LINK)
        return image(state, silent)

    def _link(self, state: StateInline, silent: bool) -> bool:
        if not state.src.startswith("[", state.pos):
            return False
        self._count(_STEPS_PER_LINK)
        return link(state, silent)

    def parse(self, src: str, md: MarkdownIt, env: Environment, tokens: list[Token]) -> list[Token]:
        self._steps = _FREE_STEPS + _STEPS_PER_CHARACTER * len(src)
        return super().parse(src, md, env, tokens)


class Parser(MarkdownIt):
    """CommonMark with tables, strikethrough and formulas, without HTML. One instance serves one thread at a time."""

    def __init__(self) -> None:
        super().__init__("commonmark", {"html": False, "maxNesting": _DEEPEST + 4})
        self.inline = _BoundedInline()
        self.configure("commonmark", {"html": False, "maxNesting": _DEEPEST + 4})
        self.enable(["table", "strikethrough"])
        self.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
        self.block.ruler.before("table", "too_deep", _too_deep)
        add_math(self)

    def normalizeLinkText(self, link: str) -> str:  # noqa: N802  # the name of markdown-it
        """Show an address as it was written."""
        return link

    def parse_blocks(self, text: str, env: Environment) -> list[Token]:
        """Parse the blocks, and leave their text unparsed."""
        tokens: list[Token] = []
        self.block.parse(text, self, env, tokens)
        return tokens

    def parse_inline(self, text: str, env: Environment) -> list[Token]:
        """Parse the text of a block. Raise TooExpensive instead of taking long."""
        return self.inline.parse(text, self, env, [])


def _table(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    """Match a table, unless it is code, or most of its cells would be added to rows that are too short."""
    first = state.bMarks[start_line] + state.tShift[start_line]
    if start_line + 2 > end_line or state.src.startswith(("```", "~~~"), first):
        return False
    start, delimiters = state.bMarks[start_line], state.bMarks[start_line + 1]
    columns = state.src.count("|", delimiters, state.eMarks[start_line + 1]) + 1
    if columns > _FEW_COLUMNS:
        blank = _BLANK_LINE.search(state.src, start)
        end = blank.start() if blank else len(state.src)
        cells = columns * state.src.count("\n", start, end)
        if cells > _FREE_CELLS + 4 * state.src.count("|", start, end):
            return False
    return table(state, start_line, end_line, silent)


def _too_deep(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    """Take all lines of a block that is nested too deeply as one paragraph; markdown-it would drop them."""
    if silent or state.level < _DEEPEST:
        return False
    token = state.push("paragraph_open", "p", 1)
    token.map = [start_line, end_line]
    inline = state.push("inline", "", 0)
    inline.content = state.getLines(start_line, end_line, state.blkIndent, False).strip()
    inline.map = [start_line, end_line]
    inline.children = []
    state.push("paragraph_close", "p", -1)
    state.line = end_line
    return True
