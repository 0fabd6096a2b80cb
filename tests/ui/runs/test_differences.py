"""Differences of two texts: each line of both is shown, with a sign, and the words that differ are marked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.ui.runs import differences
from roost.ui.runs.differences import Pair

LINES = st.lists(st.text(max_size=8), max_size=12)


def test_lines_that_are_the_same_stand_beside_each_other() -> None:
    found = list(differences.pairs(["a", "b", "c"], ["a", "x", "c", "d"]))
    assert found == [
        Pair("equal", "a", "a"),
        Pair("replace", "b", "x"),
        Pair("equal", "c", "c"),
        Pair("insert", None, "d"),
    ]


def test_a_difference_has_a_sign_and_a_word_and_not_only_a_colour() -> None:
    html = differences.html("Output", ["gone", "same", "a b"], ["same", "a c", "new"])
    for sign, word in (("−", "missing"), ("+", "added"), ("≠", "different")):
        assert f'<span aria-hidden="true">{sign}</span><span class="roost-hidden">{word}</span>' in html
    assert "<del>gone</del>" in html
    assert "<ins>new</ins>" in html


def test_only_the_words_that_differ_are_marked() -> None:
    assert differences.words("4 eggs cost 2.5", "4 eggs cost 3.5") == (
        "4 eggs cost <del>2</del>.5",
        "4 eggs cost <ins>3</ins>.5",
    )


@pytest.mark.parametrize("lines", [["<script>1</script>", 'a"b'], ["x" * 5_000 + "<i>"]])
def test_texts_are_escaped(lines: list[str]) -> None:
    html = differences.html('n"ame', lines, [])
    assert "<script>" not in html
    assert "<i>" not in html
    assert 'aria-label="n&quot;ame"' in html


@given(LINES, LINES)
def test_no_line_is_lost(recorded: list[str], replayed: list[str]) -> None:
    found = list(differences.pairs(recorded, replayed))
    assert [pair.recorded for pair in found if pair.recorded is not None] == recorded
    assert [pair.replayed for pair in found if pair.replayed is not None] == replayed
    assert all((pair.tag == "equal") == (pair.recorded == pair.replayed) for pair in found)


def test_very_long_texts_are_compared_line_by_line() -> None:
    many = [str(number) for number in range(differences.MOST_LINES + 1)]
    found = list(differences.pairs(many, many[1:]))
    assert len(found) == len(many)
    assert found[0] == Pair("replace", "0", "1")


def test_of_a_long_text_the_part_around_the_first_difference_is_shown() -> None:
    lines = [f"line {number}" for number in range(5_000)]
    html = differences.html("Output", lines, [*lines[:4_000], "other", *lines[4_001:]])
    assert "<td>line 3996</td>" not in html
    assert "<td>line 3997</td>" in html
    assert "<td><del>line 4000</del></td>" in html
    assert "3,997 earlier lines are not shown." in html
    assert "503 later lines are not shown." in html


def test_the_size_of_a_comparison_has_a_bound() -> None:
    html = differences.html("Output", ["a" * 1_000_000] * 3_000, ["b" * 1_000_000] * 3_000)
    assert len(html) < 2 * differences.MOST_CHARACTERS
    assert "<del>aaa" in html


def test_a_long_line_is_shown_from_shortly_before_its_difference() -> None:
    html = differences.html("Output", ["same " * 2_000 + "tea"], ["same " * 2_000 + "rum"])
    assert len(html) < 10_000
    assert "same <del>tea</del></td>" in html
    assert "<td>…" in html


def test_only_as_many_words_are_compared_as_is_quickly_done() -> None:
    old, new = (" ".join(f"{name}{number}" for number in range(100)) + " same" for name in "ab")
    html = differences.html("Output", [f"{number} {old}" for number in range(90)], [new] * 90)
    assert 0 < html.count("</ins> same</td>") <= differences.MOST_WORK / 200**2
    assert html.count(" same</ins></td>") == 90 - html.count("</ins> same</td>")
