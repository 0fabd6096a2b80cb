"""HTML of parsed Markdown. Every tag is written here, and all text is escaped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

from markdown_it.common.utils import unescapeAll
from markdown_it.token import Token

from roost.ui.rendering.code import code_block
from roost.ui.rendering.escaping import escape
from roost.ui.rendering.formulas import formula
from roost.ui.rendering.links import close_link, open_link, with_bare_links
from roost.ui.rendering.parser import Environment, Parser, TooExpensive

_BLOCKS = {
    "blockquote": 'blockquote dir="auto"',
    "bullet_list": 'ul dir="auto"',
    "paragraph": 'p dir="auto"',
    "tbody": "tbody",
    "thead": "thead",
    "tr": "tr",
}
_INLINE = {"em": "em", "s": "s", "strong": "strong"}
_DEEPEST_INLINE = 16
_TASK = re.compile(r"\[([ xX])\][ \t]")
_PER_FORMULA = 20
"""Characters that a formula counts more than it has."""


class HtmlWriter:
    """Writer of a part of an answer; blocks at the top level become one string each.

    It converts formulas of `formulas` characters, and shows those after them as their source.
    """

    def __init__(self, parser: Parser, env: Environment, formulas: int) -> None:
        self._parser = parser
        self._env = env
        self._depth = 0
        self._links: list[str] = []
        self.formulas = formulas
        self._writers: dict[str, Callable[[Token], str]] = {
            "code_block": lambda token: code_block("", token.content),
            "fence": lambda token: code_block(unescapeAll(token.info), token.content),
            "hr": lambda _: "<hr>\n",
            "inline": self._inline,
            "list_item_close": lambda _: "</li>\n",
            "list_item_open": self._list_item_open,
            "math_block": lambda token: f"<p>{self._formula(token, block=True)}</p>\n",
            "ordered_list_close": lambda _: "</ol>\n",
            "ordered_list_open": _ordered_list_open,
            "table_close": lambda _: "</table></div>\n",
            "table_open": lambda _: (
                '<div class="table" tabindex="0" role="group" aria-label="Table"><table dir="auto">\n'
            ),
            "code_inline": lambda token: f'<code dir="auto">{escape(token.content)}</code>',
            "hardbreak": lambda _: "<br>\n",
            "image": self._image,
            "link_close": self._link_close,
            "link_open": self._link_open,
            "math_inline": lambda token: self._formula(token, block=token.markup == r"\["),
            "softbreak": lambda _: "\n",
            "text": self._text,
        }

    def blocks(self, tokens: list[Token]) -> list[str]:
        numbers = _numbers_at_top_level(tokens)
        _mark_tasks(tokens)
        return [
            "".join(self._write(token) for _, token in group)
            for _, group in groupby(zip(numbers, tokens, strict=True), key=lambda pair: pair[0])
        ]

    def _write(self, token: Token) -> str:
        if token.hidden:
            return ""
        if writer := self._writers.get(token.type):
            return writer(token)
        kind, _, edge = token.type.rpartition("_")
        if edge not in ("open", "close"):
            return escape(token.content)
        if kind in _INLINE:
            return self._emphasis(_INLINE[kind], edge)
        return _block_tag(kind, token, edge)

    def _inline(self, token: Token) -> str:
        try:
            children = self._parser.parse_inline(token.content, self._env)
        except TooExpensive:
            return escape(token.content)
        return "".join(map(self._write, _joined(children)))

    def _text(self, token: Token) -> str:
        return escape(token.content) if self._links else with_bare_links(token.content)

    def _emphasis(self, tag: str, edge: str) -> str:
        self._depth += edge == "open"
        shown = f"<{'/' * (edge == 'close')}{tag}>" if self._depth <= _DEEPEST_INLINE else ""
        self._depth -= edge == "close"
        return shown

    def _link_open(self, token: Token) -> str:
        self._links.append(str(token.attrGet("href")))
        return open_link(self._links[-1], str(token.attrGet("title") or ""))

    def _link_close(self, _: Token) -> str:
        return close_link(self._links.pop())

    def _image(self, token: Token) -> str:
        """Write a link to the image: nothing is fetched unless the reader follows it."""
        address = str(token.attrGet("src"))
        alt = "".join(_plain(token.children or ()))
        shown = escape(alt)
        return shown if self._links else f"{open_link(address)}{shown or escape(address)}{close_link(address)}"

    def _formula(self, token: Token, *, block: bool) -> str:
        self.formulas -= len(token.content) + _PER_FORMULA
        if self.formulas < 0:
            return f"<code>{escape(token.info)}</code>"
        return formula(token.content, token.info, block=block)

    def _list_item_open(self, token: Token) -> str:
        done = token.meta.get("done")
        if done is None:
            return '<li dir="auto">'
        label, checked = ("Done", " checked") if done else ("Not done", "")
        return f'<li dir="auto" class="task"><input type="checkbox" disabled{checked} aria-label="{label}"> '


def _numbers_at_top_level(tokens: list[Token]) -> list[int]:
    """Return for each token the number of its block."""
    numbers: list[int] = []
    number = -1
    for token in tokens:
        number += token.level == 0 and token.nesting >= 0
        numbers.append(number)
    return numbers


def _mark_tasks(tokens: list[Token]) -> None:
    """Move the box at the start of a list item, `[ ]` or `[x]`, from its text to the item."""
    for item, paragraph, inline in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if (item.type, paragraph.type, inline.type) != ("list_item_open", "paragraph_open", "inline"):
            continue
        if found := _TASK.match(inline.content):
            item.meta = {**item.meta, "done": found[1] != " "}
            inline.content = inline.content[found.end() :]


def _block_tag(kind: str, token: Token, edge: str) -> str:
    if kind == "heading":
        tag = f'{token.tag if token.tag in ("h1", "h2", "h3", "h4", "h5", "h6") else "p"} dir="auto"'
    elif kind in ("td", "th"):
        tag = f'{kind} dir="auto"{_alignment(token)}'
    else:
        tag = _BLOCKS.get(kind, "div")
    if edge == "close":
        return f"</{tag.partition(' ')[0]}>\n"
    return f"<{tag}>"


def _alignment(token: Token) -> str:
    side = str(token.attrGet("style") or "").removeprefix("text-align:")
    return f' class="align-{side}"' if side in ("left", "center", "right") else ""


def _ordered_list_open(token: Token) -> str:
    start = token.attrGet("start")
    return f'<ol dir="auto" start="{int(start)}">\n' if start is not None else '<ol dir="auto">\n'


def _joined(tokens: Iterable[Token]) -> Iterator[Token]:
    """Join texts beside each other: an escaped character is a token of its own."""
    last: Token | None = None
    for token in tokens:
        if token.type == "text_special":
            token.type = "text"
        if last and last.type == token.type == "text":
            last.content += token.content
            continue
        if last:
            yield last
        last = token
    if last:
        yield last


def _plain(tokens: Iterable[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type in ("softbreak", "hardbreak"):
            yield "\n"
        elif token.children:
            yield from _plain(token.children)
        else:
            yield token.info if token.type == "math_inline" else token.content
