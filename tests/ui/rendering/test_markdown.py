"""Answers are shown as they were written."""

from __future__ import annotations

import pytest

from roost.ui.rendering.markdown import render
from tests.ui.rendering.html_reader import read


@pytest.mark.parametrize(
    "text",
    [
        "a -- b --- c ...",
        "a -> b >= c <- d",
        ":smile: :+1: :red[x]",
        "$5 and $10",
        "$x$ and $y$",
        "(c) (tm) +-",
        "'q' \"q\"",
    ],
)
def test_no_sign_is_replaced(text: str) -> None:
    assert read(render(text)).text == f"{text}\n"
    assert set(read(render(text)).tags) == {"p"}


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (r"see \(x^2\) there", "inline"),
        ("see $$x^2$$ there", "inline"),
        (r"\[x^2\]", "block"),
        ("$$x^2$$", "block"),
        ("text:\n$$\nx^2\n+ y\n$$\nmore", "block"),
        ("- item\n\n  $$\n  x^2\n  $$", "block"),
        ("> \\[\n> x^2\n> \\]", "block"),
    ],
)
def test_formulas_are_mathml(source: str, kind: str) -> None:
    html = render(source)
    assert f'class="math math-{kind}"' in html
    assert "<msup><mi>x</mi><mn>2</mn></msup>" in html


@pytest.mark.parametrize(
    "source", [r"\(\nosuchcommand x\)", r"$$\frac{a$$", r"\(\def\a{b}\a\)", rf"\({'x' * 2500}\)", r"\(a & b\)"]
)
def test_a_formula_that_is_not_understood_is_shown_as_its_source(source: str) -> None:
    html = render(source)
    assert read(html).text.strip() == source
    assert "<code>" in html


@pytest.mark.parametrize("source", ["`$$x$$`", "```\n$$x$$\n```", "$$ alone", "$$\n\nx\n\n$$", r"\\(x\\)", "$$$$"])
def test_other_dollars_and_brackets_are_text(source: str) -> None:
    assert "math" not in render(source)


def test_an_image_is_a_link_with_its_alt_text() -> None:
    html = render("![a *cat*](https://x.example/cat.png)")
    assert '<a href="https://x.example/cat.png" rel="noopener noreferrer nofollow" target="_blank">a cat</a>' in html


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("see https://x.example/a_(b).", "https://x.example/a_(b)"),
        ("(https://x.example/?a=1&b=2)", "https://x.example/?a=1&amp;b=2"),
        ("<https://x.example>", "https://x.example"),
        ("<a@x.example>", "mailto:a@x.example"),
        ("**https://x.example/a_b_c**", "https://x.example/a_b_c"),
    ],
)
def test_addresses_are_links(text: str, address: str) -> None:
    assert f'<a href="{address}" rel=' in render(text)


@pytest.mark.parametrize("address", ["/logout", "page", "//x.example", "ftp://x.example", "tel:1", "#top", "?x=1"])
def test_other_addresses_are_not_links(address: str) -> None:
    html = render(f"[text]({address})")
    assert "<a " not in html
    assert read(html).text == "text\n"


def test_a_table_scrolls_and_is_reached_by_keyboard() -> None:
    html = render("a | b\n--|-:\n1 | 2")
    assert '<div class="table" tabindex="0" role="group" aria-label="Table"><table dir="auto">' in html
    assert '<td dir="auto" class="align-right">2</td>' in html


def test_tasks_have_boxes() -> None:
    html = render("- [x] done\n- [ ] open\n- [y] neither")
    assert html.count("checked") == 1
    assert read(html).text.split("\n")[1:4] == [" open", "[y] neither", ""]


def test_characters_that_reorder_text_are_isolated_and_labelled() -> None:
    html = render("user\u202egpj.exe and &#x2066;x")
    assert '<bdi class="control" data-control="U+202E">\u202e</bdi>' in html
    assert '<bdi class="control" data-control="U+2066">' in html


def test_control_characters_are_pictures() -> None:
    assert read(render("a\x1b[31m\x07\x7f\x9b")).text == "a␛[31m␇␡\ufffd\n"
    assert render("\ud800").encode()


def test_nothing_is_lost_however_deep_it_is() -> None:
    assert "needle" in render("> " * 500 + "needle")
    assert "needle" in render("".join(f"{'  ' * depth}- a\n" for depth in range(60)) + "  " * 60 + "- needle")
    assert "needle" in render("*a **b " * 200 + "needle" + "** c*" * 200)


def test_an_answer_of_many_short_lines_ends_as_plain_text() -> None:
    html = render("x\n\n" * 20_000 + "**end**")
    assert read(html).text.count("x") == 20_000
    assert html.endswith("**end**</p>\n")
