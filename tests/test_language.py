"""The language of code and pages: plain technical English, as CONTRIBUTING asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CODE = ("src", "tests", "bench", "tools", "examples")
SUFFIXES = {".py", ".js", ".mjs", ".mts", ".css", ".html", ".toml"}
DIALECT = re.compile(
    r"\b(whoever|whatever it|(?<!talks to )whom|whose(?= is)|those who|that which|of which there|what becomes of|"
    r"makes of that|for ever|shall|thereby|thereof|hereby|wherein|whereby|is told|are told|tells? of|told of|was told|"
    r"lent|burns? a|has come to|come to rest|comes? to be|at rest|goes on|go on with|stumbled|look(?:s|ed)? into|"
    r"leaves? behind|the disk's word|by itself, and|is not there yet|to be had|cannot be had|so many|of a kind|"
    r"in the name of)\b",
    re.IGNORECASE,
)
"""Words that are old, poetic or a dialect of this project. "Who talks to whom" is plain."""
WORD = re.compile(r"_+|(?<=[a-z0-9])(?=[A-Z])")
"""Places between the words of an identifier."""
DOCSTRING = re.compile(
    r"""^\s*[rR]?(?:\"\"\"|''')((?:What|Whatever|Whether|Who|Whoever|Whom|Whose|Those|Where|When|Which|That|How|Why)\b.*)""",
    re.MULTILINE,
)


def files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        found = sorted(path for path in (ROOT / folder).rglob("*.*") if path.suffix in SUFFIXES)
        yield from (path for path in found if path != Path(__file__))


def places(pattern: re.Pattern[str], path: Path, text: str) -> list[str]:
    lines = [(text.count("\n", 0, match.start(1)) + 1, match[1]) for match in pattern.finditer(text)]
    return [f"{path.relative_to(ROOT)}:{line}: {words}" for line, words in lines]


@pytest.mark.parametrize("folder", CODE)
def test_names_comments_and_texts_are_in_plain_words(folder: str) -> None:
    """Identifiers count too: `goes_on` and `comeToRest` are split into their words."""
    assert [one for path in files(folder) for one in places(DIALECT, path, WORD.sub(" ", path.read_text()))] == []


def test_pages_are_in_plain_words() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    assert [one for path in pages for one in places(DIALECT, path, path.read_text())] == []


@pytest.mark.parametrize("folder", CODE)
def test_docstrings_begin_with_a_verb_or_a_noun(folder: str) -> None:
    found = [one for path in files(folder) for one in places(DOCSTRING, path, path.read_text())]
    assert found == [], "write `Return what …`, `True if …`, `Number of …`"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def _goes_on(self):", ["goes on"]),
        ("class ComeToRest:", ["Come To Rest"]),
        ("# it shall be\n", ["shall"]),
        ("silent, talented, atRestore", []),
    ],
)
def test_the_words_of_identifiers_are_read(text: str, found: list[str]) -> None:
    assert [match[1] for match in DIALECT.finditer(WORD.sub(" ", text))] == found
