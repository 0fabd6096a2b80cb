r"""Markdown rules for formulas: `$$…$$`, `\(…\)` and `\[…\]`. A single dollar is money."""

from __future__ import annotations

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

from roost.ui.rendering.formulas import LONGEST

_CLOSERS = {"$$": "$$", r"\(": r"\)", r"\[": r"\]"}
_FENCES = ("```", "~~~")
_FAILED = "formulas without an end"


def add_math(parser: MarkdownIt) -> None:
    parser.inline.ruler.before("escape", "math_inline", _inline)
    parser.block.ruler.before("fence", "math_block", _block, {"alt": ["paragraph", "reference", "blockquote", "list"]})


def _inline(state: StateInline, silent: bool) -> bool:
    start = state.pos + 2
    opener = state.src[state.pos : start]
    if opener not in _CLOSERS:
        return False
    end = state.src.find(_CLOSERS[opener], start, min(state.posMax, start + 2 * LONGEST))
    if end < 0 or not (latex := state.src[start:end].strip()):
        return False
    if not silent:
        token = state.push("math_inline", "math", 0)
        token.content = latex
        token.markup = opener
        token.info = state.src[state.pos : end + 2]
    state.pos = end + 2
    return True


def _block(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    """Match a formula that fills whole lines. It ends before a blank line and before a fence."""
    first = state.bMarks[start_line] + state.tShift[start_line]
    opener = state.src[first : first + 2]
    if opener not in ("$$", r"\[") or state.is_code_block(start_line):
        return False
    failed: dict[tuple[str, int, int], range] = state.env.setdefault(_FAILED, {})
    key = (opener, state.level, end_line)
    if start_line in failed.get(key, ()):
        return False
    last = _closing_line(state, opener, start_line, end_line)
    if last is None:
        return False
    if not silent:
        _push(state, opener, start_line, last)
    return True


def _closing_line(state: StateBlock, opener: str, start_line: int, end_line: int) -> int | None:
    line, skip = start_line, 2
    while line < end_line and not _ends_formula(state, line):
        text = _line(state, line)[skip:]
        before, closer, after = text.partition(_CLOSERS[opener])
        if closer:
            if not after.strip(" \t") and (before.strip() or line > start_line):
                return line
            break
        line, skip = line + 1, 0
    # Every start in between would search up to the same line, and fail there.
    state.env[_FAILED][opener, state.level, end_line] = range(start_line, max(line, start_line + 1))
    return None


def _ends_formula(state: StateBlock, line: int) -> bool:
    return state.isEmpty(line) or state.sCount[line] < state.blkIndent or _line(state, line).startswith(_FENCES)


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def _push(state: StateBlock, opener: str, start_line: int, last: int) -> None:
    source = "\n".join(_line(state, line) for line in range(start_line, last + 1)).rstrip(" \t")
    token = state.push("math_block", "math", 0)
    token.block = True
    token.content = source[2:-2].strip()
    token.markup = opener
    token.info = source
    token.map = [start_line, last + 1]
    state.line = last + 1
