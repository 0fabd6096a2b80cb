"""Differences of two texts, line by line and word by word, marked by signs and not by colour alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from html import escape
from itertools import zip_longest

MOST_LINES = 2_000
"""Lines up to which an inserted line does not make all later ones differ."""
MOST_SHOWN = 500
"""Pairs of lines that are shown."""
MOST_CHARACTERS = 200_000
"""Characters that are shown; at least one pair is."""
LONGEST = 4_000
"""Characters of a line that are shown."""
AROUND = 3
"""Pairs before the first difference that are shown of a text which is too long."""
MOST_WORK = 1_000_000
"""Comparisons of two words for all lines together; words of further lines are not marked one by one."""
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
SIGNS = {"equal": " ", "delete": "−", "insert": "+", "replace": "≠"}
WORDS = {"equal": "", "delete": "missing", "insert": "added", "replace": "different"}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two lines beside each other; one is None if only the other exists. `tag`: as of `SequenceMatcher`."""

    tag: str
    recorded: str | None
    replayed: str | None


def pairs(recorded: Sequence[str], replayed: Sequence[str]) -> Iterator[Pair]:
    """Compare lines: each line of both is in one pair, in order."""
    if len(recorded) > MOST_LINES or len(replayed) > MOST_LINES:
        yield from (Pair(_tag(a, b), a, b) for a, b in zip_longest(recorded, replayed))
        return
    for tag, i, j, m, n in SequenceMatcher(None, recorded, replayed, autojunk=False).get_opcodes():
        for a, b in zip_longest(recorded[i:j], replayed[m:n]):
            yield Pair(tag if tag != "replace" else _tag(a, b), a, b)


def _tag(a: str | None, b: str | None) -> str:
    if a is None or b is None:
        return "insert" if a is None else "delete"
    return "equal" if a == b else "replace"


def html(name: str, recorded: Sequence[str], replayed: Sequence[str]) -> str:
    """Return a table of both, side by side: a sign before each line that differs, and its changed words marked.

    Its size and its cost have bounds, however long the texts are. Of a long text, the part around the first difference
    is shown.
    """
    columns = ("Recorded", '<span class="roost-hidden">Difference</span>', "Replayed")
    head = "".join(f'<th scope="col">{column}</th>' for column in columns)
    return (
        f'<div class="roost-diff" role="region" tabindex="0" aria-label="{escape(name)}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{_rows([*pairs(recorded, replayed)])}</tbody></table></div>"
    )


def _rows(found: Sequence[Pair]) -> str:
    first, end = _window(found)
    rows, work = [], MOST_WORK
    for pair in map(_cut, found[first:end]):
        left, right = (_WORDS.findall(line or "") for line in (pair.recorded, pair.replayed))
        cost = len(left) * len(right) if pair.tag == "replace" else 0
        rows.append(_row(pair, words_of=(left, right) if cost <= work else None))
        work -= cost if cost <= work else 0
    return _left_out(first, "earlier") + "".join(rows) + _left_out(len(found) - end, "later")


def _window(found: Sequence[Pair]) -> tuple[int, int]:
    """Return the first pair that is shown, and the one after the last."""
    first = next((number for number, pair in enumerate(found) if pair.tag != "equal"), 0)
    first = max(first - AROUND, 0) if len(found) > MOST_SHOWN else 0
    end, size = first, 0
    for pair in found[first : first + MOST_SHOWN]:
        size += sum(min(len(line or ""), LONGEST) for line in (pair.recorded, pair.replayed))
        if size > MOST_CHARACTERS and end > first:
            break
        end += 1
    return first, end


def _cut(pair: Pair) -> Pair:
    """Return a pair of long lines from shortly before their first difference."""
    if max(len(pair.recorded or ""), len(pair.replayed or "")) <= LONGEST:
        return pair
    start = 0
    if pair.recorded and pair.replayed and pair.tag == "replace":
        differs = (a != b for a, b in zip(pair.recorded, pair.replayed, strict=False))
        same = next((number for number, so in enumerate(differs) if so), min(len(pair.recorded), len(pair.replayed)))
        start = max(same - LONGEST // 10, 0)
    return Pair(pair.tag, _part(pair.recorded, start), _part(pair.replayed, start))


def _part(line: str | None, start: int) -> str | None:
    if line is None:
        return None
    return f"{'…' if start else ''}{line[start : start + LONGEST]}{'…' if len(line) > start + LONGEST else ''}"


def _left_out(count: int, which: str) -> str:
    lines = "line is" if count == 1 else "lines are"
    return f'<tr><td colspan="3">{count:,} {which} {lines} not shown.</td></tr>' if count else ""


def _row(pair: Pair, words_of: tuple[list[str], list[str]] | None) -> str:
    left, right = pair.recorded or "", pair.replayed or ""
    if pair.tag == "replace" and words_of is not None:
        left, right = _words(*words_of)
    else:
        is_marked = pair.tag != "equal"
        left, right = _marked(left, "del", is_marked=is_marked), _marked(right, "ins", is_marked=is_marked)
    sign = f'<span aria-hidden="true">{SIGNS[pair.tag]}</span><span class="roost-hidden">{WORDS[pair.tag]}</span>'
    return f'<tr data-tag="{pair.tag}"><td>{left}</td><td>{sign}</td><td>{right}</td></tr>'


def words(recorded: str, replayed: str) -> tuple[str, str]:
    """Return two lines as HTML with the words marked that differ."""
    return _words(_WORDS.findall(recorded), _WORDS.findall(replayed))


def _words(left: list[str], right: list[str]) -> tuple[str, str]:
    """Mark words; a space alone is no common word, since each line is full of them."""
    shown: tuple[list[str], list[str]] = ([], [])
    for tag, i, j, m, n in SequenceMatcher(str.isspace, left, right, autojunk=False).get_opcodes():
        shown[0].append(_marked("".join(left[i:j]), "del", is_marked=tag != "equal"))
        shown[1].append(_marked("".join(right[m:n]), "ins", is_marked=tag != "equal"))
    return "".join(shown[0]), "".join(shown[1])


def _marked(text: str, mark: str, *, is_marked: bool) -> str:
    if not text:
        return ""
    return f"<{mark}>{escape(text)}</{mark}>" if is_marked else escape(text)
