"""An answer that grows, in whatever pieces, ends as the same HTML as the whole answer."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roost.ui.rendering import references, segments
from roost.ui.rendering.blocks import Blocks
from roost.ui.rendering.markdown import render
from tests.ui.rendering.pieces import MARKDOWN

GROWING = [
    "Title\n=====\n\ntext\n---\nmore",
    "- a\n\n- b\n\n\n  c\n\nd\n- e",
    "- a\n\n---\n\n-\n\n--",
    "[a]: http://a.example\n'title\nmore'\n\n[a]",
    "[a]: http://a.example\n'title\n```\nx\n```\n[a]",
    "[a] and [b]\n\ntext [a]\n\n[a]: http://a.example\n[b]: http://b.example 'B'",
    "[a]\n\n[a]: http://1.example\n\n[a]: http://2.example\n\n[a]",
    "text\n```python\ndef f():\n    pass\n```\nmore\n\n~~~\nopen",
    "```\na\r\n```\r\nb\r\r```\rc\r```\r",
    "a | b\n--|--\n1 | 2\n\n3 | 4\n",
    "a\nb | c\n--|--\n1 | 2",
    "> quote\nlazy\n\n> other\n```\ncode",
    "$$\na\n+ b\n$$\n\n\\[\nx\n\nnot math\n\\]\n",
    "text\n$$\nx\n```\n$$\n```\n",
    "    code\n\n    code\n\ntext\n\n\tcode",
    "<div>\n\n**a**\n\n</div>\n\n<!-- x\n\ny -->\n",
    "1. a\n\n   ```\n   b\n\n   c\n   ```\n2. d\n\nend\n",
    "# a\n# b\n***\n[a]: b\n'x\n# c\n",
    "\n\n \n\t\n```\n\n\n```",
    "[a]\n\n2) [a]: http://a.example\n\n[a]",
    "   ```\n   a\n  ```\nb\n\n```` x\n```\n````\n",
]


def grown(source: str, size: int) -> str:
    blocks = Blocks()
    for end in range(size, len(source) + size, size):
        shown = blocks.update(source[:end])
        assert [block.key for block in shown] == list(range(len(shown)))
        assert "".join(block.html for block in shown) == render(source[:end])
    return "".join(block.html for block in blocks.update(source))


@pytest.mark.parametrize("source", GROWING)
def test_an_answer_is_the_same_at_every_character(source: str) -> None:
    assert grown(source, 1) == render(source)


@settings(max_examples=150, deadline=None)
@given(MARKDOWN, st.integers(1, 30))
def test_an_answer_is_the_same_in_whatever_pieces_it_grows(source: str, size: int) -> None:
    assert grown(source, size) == render(source)


@pytest.fixture
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "LONGEST", 60)
    monkeypatch.setattr(segments, "MOST_LINES", 6)
    monkeypatch.setattr(segments, "FREE_LINES", 8)
    monkeypatch.setattr(segments, "_PLAIN", 20)
    monkeypatch.setattr(references, "_LONGEST", 40)
    monkeypatch.setattr(references, "_MOST", 1)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(source=MARKDOWN, size=st.integers(1, 30))
@pytest.mark.usefixtures("small_bounds")
def test_bounds_are_reached_at_the_same_places(source: str, size: int) -> None:
    assert grown(source, size) == render(source)


def test_another_text_is_rendered_from_the_start() -> None:
    blocks = Blocks()
    blocks.update("one [a]\n\n[a]: http://a.example\n\ntwo\n\nthree")
    assert "".join(block.html for block in blocks.update("four [a]\n\nfive")) == render("four [a]\n\nfive")


def test_a_link_may_be_defined_after_it() -> None:
    blocks = Blocks()
    text = "see [a]\n\nmore\n\nand more\n\n"
    assert "<a " not in blocks.update(text)[0].html
    assert '<a href="https://a.example"' in blocks.update(f"{text}[a]: https://a.example")[0].html


def test_a_closed_block_is_rendered_once() -> None:
    blocks = Blocks()
    first = blocks.update("one\n\ntwo\n\nthree\n")
    second = blocks.update("one\n\ntwo\n\nthree\nand more")
    assert [one.html is other.html for one, other in zip(first, second, strict=True)] == [True, True, False]
