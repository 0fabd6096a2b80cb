"""Markdown in a terminal: the same picture in whatever pieces it arrives, and everything that was said is on it."""

from __future__ import annotations

import pytest

from roost.cli.render.markdown import MarkdownStream, render, split
from tests.cli.screens import on_screen

SOURCE = """# Birds

The **wren** says `tic` and
a <b>tag</b> is text; [a link](https://example.org/) and ![a nest](https://example.org/n.png) too.

1. one

   more of one
2. two

> quoted
> twice

| bird | sound |
| --- | --- |
| wren | tic |

```python
def sing(x):

    return x
```

The end
"""


def written(pieces: list[str]) -> str:
    out: list[str] = []
    stream = MarkdownStream(out.append)
    for piece in pieces:
        stream.put(piece)
    stream.close()
    return "".join(out).replace("\n", "\r\n")  # as a terminal does


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 10_000])
def test_the_picture_is_the_same_in_whatever_pieces_it_arrives(size: int) -> None:
    pieces = [SOURCE[at : at + size] for at in range(0, len(SOURCE), size)]
    shown = [line for line in on_screen(written(pieces)) if line]
    assert shown == [line for line in on_screen("\n".join(render(SOURCE)).replace("\n", "\r\n")) if line]
    assert "a <b>tag</b> is text; a link (https://example.org/) and a nest" in shown[2]
    assert [line.strip() for line in shown if "quoted" in line or "twice" in line] == ["▌ quoted", "▌ twice"]


def test_a_finished_block_is_written_once_and_only_the_last_one_again() -> None:
    out: list[str] = []
    stream = MarkdownStream(out.append)
    for piece in ("first\n\n", "sec", "ond", " block\n\n", "third"):
        stream.put(piece)
    assert "first" in "".join(out[:4])
    assert "first" not in "".join(out[4:])
    assert on_screen("".join(out).replace("\n", "\r\n")) == ["first", "", "second block", "", "third"]


def test_only_the_last_block_can_change() -> None:
    assert split("one\n\ntwo") == ("one\n", "two")
    assert split("- one\n\n") == ("", "- one\n\n")
    assert split("```\ncode\n\nstill code") == ("", "```\ncode\n\nstill code")


def test_a_block_that_is_longer_than_the_screen_is_shown_whole_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINES", "10")
    monkeypatch.setenv("COLUMNS", "40")
    text = "```\n" + "".join(f"line {number}\n" for number in range(3_000)) + "```\n"
    shown = written([text[at : at + 2_000] for at in range(0, len(text), 2_000)])
    assert [line.strip() for line in on_screen(shown) if line] == [f"line {number}" for number in range(3_000)]
    assert max(int(up) for up in [piece.split("A")[0] for piece in shown.split("\x1b[")] if up.isdigit()) < 10


@pytest.mark.parametrize(
    "text", ["\x1b]0;owned\x07a", "a\x1b[2Jb", "\x9b31ma", "a\u202eb", "`\x1b[31m`a", "```\n\x1b]52;c;x\x07a"]
)
def test_what_an_agent_says_cannot_touch_the_terminal(text: str) -> None:
    ours = written([text])
    assert "\x1b]" not in ours
    assert "2J" not in ours
    assert all(c in "\n\r\x1b" or c.isprintable() for c in ours)
    assert "a" in "".join(on_screen(ours))
