"""Costly texts take a bounded CPU time, whole and while they grow."""

from __future__ import annotations

import time

import pytest

from roost.ui.rendering.blocks import Blocks
from roost.ui.rendering.markdown import render

SIZE = 100_000
REPEATED = [
    *(
        "[",
        "![](",
        "[a](",
        "[[]",
        "[a][",
        "]",
        "*",
        "*a_ ",
        "_a*",
        "**a**",
        "`",
        "`a``",
        "<",
        "<a@b.c>",
        "&",
        "\\",
        "~",
        "|",
    ),
    *(
        "> ",
        ">",
        "- ",
        "1. > - ",
        "- a\n",
        "- [x] a\n  - ",
        "> a\n",
        "x\n",
        "a\n\n",
        "# a\n",
        "a\n=\n",
        "a|b\n-|-\n",
        "|\n",
    ),
    *(
        "[a\n",
        "[a]: b\n",
        "[a]: x '\n",
        "[a]: /b\n\n[a]\n\n",
        "$$\n",
        "\\[\n",
        "\\[a\n",
        "\\(a\\) ",
        "```py\n",
        "```py\n1\n```\n",
    ),
    *("words ", " ", "\t", "\n", "\r", "\u202e", "http://a.,", "https://x)"),
]
BUILT = {
    "short rows of a wide table": "a|" * 500 + "\n" + "-|" * 500 + "\n" + "a\n" * 49_000,
    "nested lists": "\n".join("  " * depth + "- a" for depth in range(440)),
    "labels defined late": "".join(f"[a{n}]\n\n" for n in range(5_000)) + "".join(f"[a{n}]: b\n" for n in range(5_000)),
    "long formulas": "\n\n".join(f"$$\n{n}+{'a' * 1_900}\n$$" for n in range(50)),
    "formulas": "\n\n".join(f"\\({n}x^2\\)" for n in range(7_000)),
    "code": "\n".join(f'```ts\nlet x{n} = {{ a: "{"?x" * 100}" }}\n```' for n in range(400)),
}
HOSTILE = {repr(piece): (piece * SIZE)[:SIZE] for piece in REPEATED} | BUILT
ALLOWED = 3.0
"""CPU seconds for 100,000 characters: several times what is measured, for slow machines."""


def cost(source: str) -> float:
    started = time.thread_time()
    render(source)
    return time.thread_time() - started


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_takes_a_bounded_time(name: str) -> None:
    source = HOSTILE[name]
    assert cost(source) < ALLOWED * max(len(source) / SIZE, 1)


def test_the_cost_of_a_piece_does_not_depend_on_the_length_of_the_answer() -> None:
    section = "Some *words*, a [link](https://x.example) and `code`.\n\n```python\nx = 1\n```\n\n- one\n- two\n\n"
    answer = section * (1_000_000 // len(section))
    blocks = Blocks()
    blocks.update(answer[:100_000])
    early = _growth(blocks, answer, 100_000)
    blocks.update(answer[:900_000])
    assert _growth(blocks, answer, 900_000) < 4 * early + 0.2


def _growth(blocks: Blocks, answer: str, start: int) -> float:
    """Return the cost of 500 pieces of 20 characters."""
    sources = [answer[: start + 20 * number] for number in range(1, 501)]
    started = time.thread_time()
    for source in sources:
        blocks.update(source)
    return time.thread_time() - started
