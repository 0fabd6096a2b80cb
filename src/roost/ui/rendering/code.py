"""Code blocks: a scrolling box with its language, a copy button and coloured words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Generic, Keyword, Literal, Name, Operator, Token, _TokenType

from roost.ui.rendering.escaping import escape, escape_attribute

LONGEST = 12_000
"""Characters of a block that are coloured; the lines after them are plain."""
_LONG_LINE = re.compile(r"[^\n]{240}")
"""The lines from this one on are plain: some lexers are slow on long lines."""
_SMALLEST_STEP = 256
_NAME = re.compile(r"[\w+#.-]{1,30}")
_LANGUAGES = {
    name: alias
    for alias, names in {
        "bash": "bash sh shell zsh",
        "c": "c h",
        "cpp": "cpp c++ cc hpp",
        "csharp": "csharp c# cs",
        "css": "css",
        "diff": "diff patch",
        "docker": "docker dockerfile",
        "go": "go golang",
        "groovy": "groovy java",  # the lexer for Java needs minutes for some code
        "html": "html xhtml",
        "ini": "ini cfg",
        "javascript": "javascript js jsx mjs",
        "json": "json jsonc json5",
        "kotlin": "kotlin kt",
        "lua": "lua",
        "php": "php",
        "powershell": "powershell ps1",
        "pycon": "pycon",
        "python": "python py python3",
        "r": "r",
        "ruby": "ruby rb",
        "rust": "rust rs",
        "sql": "sql postgresql sqlite mysql",
        "swift": "swift",
        "toml": "toml",
        "typescript": "typescript ts tsx",
        "xml": "xml svg",
        "yaml": "yaml yml",
    }.items()
    for name in names.split()
}
"""Names of languages that are coloured. Each lexer is tested against hostile code; others are not used."""
_CLASSES: dict[_TokenType, str] = {
    Comment: "comment",
    Comment.Preproc: "keyword",
    Generic.Deleted: "deleted",
    Generic.Heading: "title",
    Generic.Inserted: "inserted",
    Generic.Subheading: "title",
    Keyword: "keyword",
    Literal: "string",
    Literal.Number: "number",
    Name.Attribute: "name",
    Name.Builtin: "builtin",
    Name.Class: "name",
    Name.Decorator: "builtin",
    Name.Exception: "builtin",
    Name.Function: "name",
    Name.Tag: "keyword",
    Operator.Word: "keyword",
}


def code_block(info: str, code: str, *, is_open: bool = False) -> str:
    """Return a code block. While it is open, its last lines are plain, so that growing costs little."""
    language = (info.split() or [""])[0].strip("{}.").lower()
    name = language if _NAME.fullmatch(language) else ""
    label = escape_attribute(f"Code, {name}" if name else "Code")
    css_class = f' class="language-{escape_attribute(name)}"' if name else ""
    return (
        f'<div class="code"><div class="code-head"><span class="code-language">{escape(name)}</span>'
        f'<button type="button" class="code-copy">Copy code</button></div>'
        f'<pre tabindex="0" role="group" aria-label="{label}" dir="ltr"><code{css_class}>'
        f"{_coloured_start(name, code, is_open=is_open)}</code></pre></div>"
    )


def _coloured_start(language: str, code: str, *, is_open: bool) -> str:
    alias = _LANGUAGES.get(language)
    if alias is None:
        return escape(code)
    end = min(_settled_length(len(code)) if is_open else len(code), LONGEST)
    if long_line := _LONG_LINE.search(code, 0, end):
        end = long_line.start()
    if end < len(code):
        end = code.rfind("\n", 0, end) + 1
    return highlighted(alias, code[:end]) + escape(code[end:])


def _settled_length(length: int) -> int:
    """Round down to one of about ten lengths per doubling: then a growing text is coloured ten times per doubling."""
    step = max(_SMALLEST_STEP, 1 << max(length.bit_length() - 4, 0))
    return length - length % step


@lru_cache(maxsize=128)
def highlighted(alias: str, code: str) -> str:
    """Return code with a class for each kind of word, or without if the lexer would change it."""
    words = list(_merged(get_lexer_by_name(alias), code))
    if "".join(word for _, word in words) != code:
        return escape(code)
    return "".join(f'<span class="tok-{kind}">{escape(word)}</span>' if kind else escape(word) for kind, word in words)


def _merged(lexer: Lexer, code: str) -> Iterator[tuple[str, str]]:
    """Join neighbours of the same class."""
    kind, words = "", list[str]()
    for _, token, word in lexer.get_tokens_unprocessed(code):
        if (found := _class(token)) != kind:
            yield kind, "".join(words)
            kind, words = found, []
        words.append(word)
    yield kind, "".join(words)


@lru_cache(maxsize=1024)
def _class(token: _TokenType) -> str:
    kind: _TokenType | None = token
    while kind is not None and kind is not Token:
        if kind in _CLASSES:
            return _CLASSES[kind]
        kind = kind.parent
    return ""
