"""Rendering of an answer while it grows."""

from __future__ import annotations

from typing import NamedTuple

from markdown_it.common.utils import unescapeAll

from roost.ui.rendering.code import code_block
from roost.ui.rendering.escaping import escape
from roost.ui.rendering.html import HtmlWriter
from roost.ui.rendering.parser import Parser
from roost.ui.rendering.references import Definitions, Lookups, References, User
from roost.ui.rendering.segments import Segment, Segmenter, parse

_FREE_FORMULAS = 10_000
_CHARACTERS_PER_FORMULA = 4
"""Characters of formulas that are converted: some in any case, and one per this number of characters of the answer."""


class Block(NamedTuple):
    """A block at the top level of an answer. Its key is its number."""

    key: int
    html: str


class Blocks:
    """The HTML of an answer that grows, as a list of blocks. One thread at a time may use an instance."""

    def __init__(self) -> None:
        self._parser = Parser()
        self._closed_source = ""
        self._growing = _GrowingBlocks(self._parser)

    def update(self, source: str) -> list[Block]:
        """Return the blocks of the source. One that does not continue the source before is rendered from the start."""
        if not source.startswith(self._closed_source):
            self._growing = _GrowingBlocks(self._parser)
        blocks = self._growing.update(source)
        if self._growing.start != len(self._closed_source):
            self._closed_source = source[: self._growing.start]
        return blocks


class _GrowingBlocks:
    """Blocks of a text that only grows.

    Segments that cannot change any more are rendered once; only the open one at the end is parsed again. The definition
    of a label renders the segments again that used it before.
    """

    def __init__(self, parser: Parser) -> None:
        self._parser = parser
        self._segmenter = Segmenter(parser)
        self._closed: list[Block] = []
        self._references = References()
        self._formulas = _FREE_FORMULAS

    @property
    def start(self) -> int:
        """Return the position from which the text is parsed again."""
        return self._segmenter.start

    def update(self, source: str) -> list[Block]:
        closed, last = self._segmenter.advance(source)
        for segment in closed:
            self._close(segment)
        for user in self._references.define_at_end(last.definitions):
            self._render_again(user)
        return self._closed + self._numbered(self._rendered(last, self._user(last), self._references.current))

    def _close(self, segment: Segment) -> None:
        self._references.define(segment.definitions)
        user = self._user(segment)
        blocks = self._rendered(segment, user, self._references.closed)
        self._references.use(user)
        self._closed += self._numbered(blocks)
        self._formulas += len(segment.source) // _CHARACTERS_PER_FORMULA - user.formulas_used

    def _render_again(self, user: User) -> None:
        blocks = self._rendered(parse(self._parser, user.source), user, self._references.current)
        self._references.index(user)
        for number, html in enumerate(blocks, user.first_block):
            self._closed[number] = Block(number, html)

    def _user(self, segment: Segment) -> User:
        return User(segment.source, len(self._closed), formulas=max(self._formulas, 0))

    def _rendered(self, segment: Segment, user: User, definitions: Definitions) -> list[str]:
        if fence := segment.fence:
            return [code_block(unescapeAll(fence.info), fence.code, is_open=fence.is_open)]
        if segment.is_plain:
            return [f'<p dir="auto" class="plain">{escape(segment.source)}</p>\n']
        lookups = Lookups(definitions)
        writer = HtmlWriter(self._parser, {"references": lookups}, user.formulas)
        blocks = writer.blocks(segment.tokens)
        user.seen = lookups.seen
        user.formulas_used = user.formulas - max(writer.formulas, 0)
        return blocks

    def _numbered(self, blocks: list[str]) -> list[Block]:
        return [Block(number, html) for number, html in enumerate(blocks, len(self._closed))]
