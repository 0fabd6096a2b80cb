"""Rendering of an answer while it grows."""

from __future__ import annotations

from typing import NamedTuple

from markdown_it.common.utils import unescapeAll

from roost.ui.rendering.code import code_block
from roost.ui.rendering.html import HtmlWriter
from roost.ui.rendering.parser import Parser
from roost.ui.rendering.references import Definition, Definitions, Lookups, References, User
from roost.ui.rendering.segments import Segment, parse, split


class Block(NamedTuple):
    """A block at the top level of an answer. Its key is its number."""

    key: int
    html: str


class Blocks:
    """The HTML of an answer that grows, as a list of blocks.

    Segments that cannot change any more are rendered once; only the open one at the end is parsed again. The definition
    of a label renders the segments again that used it before. One thread at a time may use an instance.
    """

    def __init__(self) -> None:
        self._parser = Parser()
        self._closed_source = ""
        self._closed: list[Block] = []
        self._references = References()

    def update(self, source: str) -> list[Block]:
        """Return the blocks of the source. One that does not continue the source before is rendered from the start."""
        if not source.startswith(self._closed_source):
            self._clear()
        parts = split(self._parser, source, len(self._closed_source))
        for segment in parts.closed:
            self._close(segment)
        if parts.closed:
            self._closed_source = source[: parts.open_from]
        for user in self._references.define_at_end(parts.open.definitions):
            self._render_again(user)
        blocks, _ = self._rendered(parts.open, self._references.current)
        return self._closed + _numbered(len(self._closed), blocks)

    def _clear(self) -> None:
        self._closed_source = ""
        self._closed = []
        self._references = References()

    def _close(self, segment: Segment) -> None:
        self._references.define(segment.definitions)
        blocks, seen = self._rendered(segment, self._references.closed)
        self._references.use(User(segment.source, len(self._closed), seen))
        self._closed += _numbered(len(self._closed), blocks)

    def _render_again(self, user: User) -> None:
        segment = parse(self._parser, user.source)
        blocks, seen = self._rendered(segment, self._references.current)
        self._closed[user.first_block : user.first_block + len(blocks)] = _numbered(user.first_block, blocks)
        self._references.seen_again(user, seen)

    def _rendered(self, segment: Segment, definitions: Definitions) -> tuple[list[str], dict[str, Definition | None]]:
        if fence := segment.fence:
            return [code_block(unescapeAll(fence.info), fence.code, is_open=fence.is_open)], {}
        lookups = Lookups(definitions)
        writer = HtmlWriter(self._parser, {"references": lookups})
        return writer.blocks(segment.tokens), lookups.seen


def _numbered(first: int, blocks: list[str]) -> list[Block]:
    return [Block(first + number, html) for number, html in enumerate(blocks)]
