"""Rendered pages have only known tags, attributes and addresses, properly nested, whatever is written."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.ui.rendering.markdown import render
from tests.ui.rendering.html_reader import read
from tests.ui.rendering.pieces import MARKDOWN

LATEX = [
    *(
        "\\text{",
        "\\href{",
        "javascript:alert(1)",
        "}",
        "{",
        "<script>",
        "</math>",
        "&lt;",
        "&#60;",
        "&#x3c;",
        '"',
        "'",
        "&",
    ),
    *(
        "\\frac",
        "\\sqrt",
        "^",
        "_",
        "\\left(",
        "\\right)",
        "\\begin{matrix}",
        "\\end{matrix}",
        "\\\\",
        "\\class{a b}",
        "#",
        "%",
    ),
    *(
        "\\style{color:red}",
        "\\hspace{99999em}",
        "\\rule{9em}{9em}",
        "\\color{red}",
        "\\mathbb{R}",
        "x",
        "1.5",
        "\\foo",
        "~",
        "\n",
    ),
    *(
        "\\operatorname{<img src=x onerror=alert(1)>}",
        "\\begin{array}{<b>}",
        "\\unicode{60}",
        "\\mathrm{</mi><b>}",
        "\u202e",
        "\\def",
    ),
]
ATTACKS = [
    "<img src=x onerror=alert(1)>",
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt:alert(1))",
    "[a](&#106;avascript:alert(1))",
    "[a](java\tscript:alert(1))",
    "[a](\x01javascript:alert(1))",
    "[a](data:text/html;base64,PHNjcmlwdD4=)",
    "[a](vbscript:x) [b](file:///etc/passwd) [c](blob:x) [d](//evil.example) [e](/logout)",
    "<javascript:alert(1)> <data:text/html,x>",
    '[a](https://x.example/"onmouseover="alert(1))',
    "[a](https://x.example 'x\" onmouseover=\"alert(1)')",
    '![a" onerror="alert(1)](https://x.example/p.png)',
    "![a](javascript:alert(1))",
    "[![a](https://x.example)](javascript:alert(1))",
    '```"><script>alert(1)</script>\nx\n```',
    '```py" onclick="alert(1)\nx\n```',
    "``` &quot;&gt;&lt;script&gt;\nx\n```",
    "$$\\text{</math><script>alert(1)</script>}$$",
    "$$\\href{javascript:alert(1)}{x}$$",
    '\\(" onclick="alert(1)\\)',
    'https://x.example/"onclick=alert(1) https://x.example/\'x <https://x.example/"x>',
    "[a]: javascript:alert(1)\n\n[a]",
    "<a href='javascript:alert(1)'>x</a>\n\n<svg><style><!--</style><img title=\"--><img src=x onerror=alert(1)>\">",
    "| a |\n|---|\n| <td onclick=x> |",
    "1234567890123. a\n\n999999999. b",
]


@pytest.mark.parametrize("source", ATTACKS)
def test_known_attacks_are_text(source: str) -> None:
    html = render(source)
    read(html)
    assert "<script" not in html
    assert "<img" not in html


@settings(max_examples=300, deadline=None)
@given(MARKDOWN)
def test_only_known_tags_and_attributes_appear(source: str) -> None:
    read(render(source))


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([("$$", "$$"), ("\\(", "\\)"), ("\\[\n", "\n\\]")]), st.lists(st.sampled_from(LATEX), max_size=12)
)
def test_formulas_hold_only_mathml(delimiters: tuple[str, str], pieces: list[str]) -> None:
    read(render("".join(pieces).join(delimiters)))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(["python", "html", "js", "diff", "yaml", "php", "x y", "c++", '"<b>']), MARKDOWN)
def test_code_is_shown_as_it_is(language: str, code: str) -> None:
    code = code.replace("`", "'").replace("\r", "").replace("\0", "")
    html = render(f"```{language}\n{code}\n```")
    assert read(html).text.split("\n")[:1] == read(render(f"```\n{code}\n```")).text.split("\n")[:1]


def test_nothing_is_fetched() -> None:
    html = render(
        "![a](https://x.example/a.png) <img src='https://x.example/b.png'> [![c](https://x.example/c.png)](d)"
    )
    assert " src=" not in html.replace("&lt;img src=", "")
    assert set(read(html).tags) == {"p", "a", "span"}
