"""Words with their places, queries, excerpts: pure functions."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from roost.core.memory.memories import words
from roost.core.talks.search import EXCERPT, Place, Term, distinct_words, excerpt, matches, parsed, patterns, tokens
from roost.errors import Invalid

TEXTS = st.text(st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from('aeéßŁ 東京\u0301한🐦½“”"_%ﬁ\n')))


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("Big Bird", [Term(("big",)), Term(("bird",), True)]),
        ("Big Bird ", [Term(("big",)), Term(("bird",))]),
        ('"Big Bird"', [Term(("big", "bird"))]),
        ('x "Big Bi', [Term(("x",)), Term(("big", "bi"), True)]),
        ("„Grüße“", [Term(("grusse",))]),
        ("東京", [Term(("東", "京"), True)]),
        ("e-mail!", [Term(("e", "mail"), True)]),
        ("a a a ", [Term(("a",))]),
        ("NEAR(a OR b) -c*", [Term(("near", "a")), Term(("or",)), Term(("b",)), Term(("c",), True)]),
        ("\0\ud800 % _ ' ; --", []),
    ],
)
def test_a_query_is_words_and_phrases(query: str, terms: list[Term]) -> None:
    assert parsed(query) == tuple(terms)


def test_a_query_must_be_a_text() -> None:
    with pytest.raises(Invalid, match="must be a text"):
        parsed(7)


def test_a_long_query_is_cut() -> None:
    terms = parsed("word " + " ".join(f"w{number}" for number in range(50_000)))
    assert len(terms) == 32
    assert parsed('"' + "a " * 50_000) == (Term(("a",) * 32),)


@given(TEXTS)
@example("e\u0301\u0301 \u1112\u1161\u11ab")
def test_words_are_those_of_memories_and_stand_where_they_are_said_to(text: str) -> None:
    found = list(tokens(text))
    assert all(0 <= one.start < one.end <= len(text) for one in found)
    assert all(a.start <= b.start for a, b in pairwise(found))
    if text.isascii():
        assert [text[one.start : one.end].lower()[:64] for one in found] == [one.word for one in found]
        assert set(words(text)) == distinct_words(text)


@given(TEXTS, st.data())
def test_each_word_of_a_text_finds_it_by_itself_as_a_prefix_and_in_a_phrase(text: str, data: st.DataObject) -> None:
    found = list(tokens(text))
    if not found:
        return
    at = data.draw(st.integers(0, len(found) - 1))
    one, cut = found[at], data.draw(st.integers(1, 64))
    place = (one.start, one.end)
    assert place in matches(text, [Term((one.word,))])
    assert place in matches(text, [Term((one.word[:cut],), True)])
    phrase = Term(tuple(token.word for token in found[at : at + 5]))
    assert place in matches(text, [phrase])
    block = f" {' '.join(sorted(distinct_words(text)))} "
    for pattern in patterns([phrase, Term((one.word[:cut],), True)]):
        assert pattern.strip("%") in block
        assert not set(pattern[1:-1]) & set("%_\\")


@given(TEXTS, TEXTS, TEXTS)
def test_an_excerpt_is_short_and_its_ranges_are_the_words(before: str, word: str, after: str) -> None:
    text = before * 20 + " needle " + word + after * 20
    found = matches(text, parsed("needle"))
    line, ranges = excerpt(text, found)
    assert len(line) <= EXCERPT + 2
    assert "\n" not in line
    start, end = ranges[0]
    assert line[start:end].lower().startswith("needle")


def test_an_excerpt_of_one_endless_word_is_cut() -> None:
    line, ranges = excerpt("x" * 10_000, [(0, 10_000)])
    assert line == "x" * EXCERPT + "…"
    assert ranges == ((0, EXCERPT),)


def test_a_cursor_is_read_as_it_was_written_and_nothing_else_is() -> None:
    place = Place(1234.5678, "talk_1", 7)
    assert Place.decode(place.encode()) == place
    for text in (
        "",
        "x",
        "inf~1~talk",
        "nan~1~t",
        "0x1p0~-1~t",
        "0x1p0~1~",
        "0x1p99999~1~t",
        "1~" + "9" * 20 + "~t",
        7,
    ):
        with pytest.raises(Invalid, match="cursor"):
            Place.decode(text)
