"""Markdown of agents as safe HTML, in blocks, so that a text that grows is rendered from its last block on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

Blocks = tuple[str, ...]


class _Renderer(RendererHTML):
    """HTML in which nothing is fetched: images are links, and links open in a tab of their own."""

    def image(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[index]
        alt = self.renderInlineAsText(token.children, options, env) if token.children else ""
        source = str(token.attrs.get("src", ""))
        return f"{_anchor(source)}{escape(alt or source)}</a>"

    def link_open(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        return _anchor(str(tokens[index].attrs.get("href", "")))

    def fence(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        return _code(tokens[index].content)

    def code_block(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        return _code(tokens[index].content)

    def table_open(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        return '<div class="table-scroll" tabindex="0"><table>\n'

    def table_close(self, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
        return "</table></div>\n"


_MARKDOWN = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer).enable("table")


def render_blocks(source: str) -> Blocks:
    """Return the HTML of each top-level block."""
    return tuple(html for _, html in _blocks(source))


class GrowingMarkdown:
    """Renderer of one text while it is written: blocks that later text cannot change are rendered once.

    A link may be defined after the block that uses it, so a finished text is rendered as a whole.
    """

    def __init__(self) -> None:
        self._closed = ""
        self._html: list[str] = []

    def render(self, source: str) -> Blocks:
        if not source.startswith(self._closed):
            self._closed, self._html = "", []
        tail = source[len(self._closed) :]
        blocks = list(_blocks(tail))
        rendered = (*self._html, *(html for _, html in blocks))
        if len(blocks) > 1 and "\r" not in tail:  # which the parser replaces, so that lines do not tell the place
            self._closed += "".join(f"{line}\n" for line in tail.split("\n")[: blocks[-1][0]])
            self._html += [html for _, html in blocks[:-1]]
        return rendered


def _blocks(source: str) -> Iterator[tuple[int, str]]:
    """Yield each top-level block with its first line."""
    env: dict[str, object] = {}
    tokens, start = _MARKDOWN.parse(source, env), 0
    for index, token in enumerate(tokens):
        if token.level == 0 and token.nesting <= 0:
            first = tokens[start].map
            yield first[0] if first else 0, _MARKDOWN.renderer.render(tokens[start : index + 1], _MARKDOWN.options, env)
            start = index + 1


def _anchor(url: str) -> str:
    return f'<a href="{escape(url)}" target="_blank" rel="noopener noreferrer">'


def _code(content: str) -> str:
    return (
        '<div class="code-block"><button type="button" class="code-copy">Copy code</button>'
        f'<pre tabindex="0"><code>{escape(content)}</code></pre></div>\n'
    )
