"""Words with their places, queries, excerpts: pure functions."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from roost.core.brain_data.memories import words
from roost.core.talks.search import EXCERPT, Folded, Matcher, Place, Term, distinct_words, parsed, patterns
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


def found(text: str, *terms: Term) -> list[str] | None:
    """Return the matched words near the first match."""
    line = Matcher(terms).excerpt(text)
    return None if line is None else [line[0][start:end] for start, end in line[1]]


@given(TEXTS, st.data())
@example("e\u0301\u0301 \u1112\u1161\u11ab", None)
def test_each_word_of_a_text_finds_it_by_itself_as_a_prefix_and_in_a_phrase(
    text: str, data: st.DataObject | None
) -> None:
    words = list(Folded(text).words())
    if not words:
        return
    at = 0 if data is None else data.draw(st.integers(0, len(words) - 1))
    cut = 1 if data is None else data.draw(st.integers(1, 64))
    word, phrase = Term((words[at],)), Term(tuple(words[at : at + 5]))
    prefix = Term((words[at][:cut],), True)
    for terms in ((word,), (phrase,), (prefix,), (word, phrase, prefix)):
        marked = found(text, *terms)
        assert marked
        assert all(marked)
    block = f" {' '.join(sorted(distinct_words(text)))} "
    for pattern in patterns([phrase, prefix]):
        assert pattern.strip("%") in block
        assert not set(pattern[1:-1]) & set("%_\\")


@given(TEXTS.filter(str.isascii))
def test_words_are_those_of_memories(text: str) -> None:
    assert distinct_words(text) == set(words(text))


@given(TEXTS, TEXTS, st.sampled_from(["needle", "Nêedle", "ＮＥＥＤＬＥ"]))
def test_an_excerpt_is_one_short_line_and_its_ranges_are_the_words(before: str, after: str, word: str) -> None:
    text = f"{before * 200} {word} {after * 20}"
    line = Matcher(parsed("needle")).excerpt(text)
    assert line is not None
    excerpt, ranges = line
    assert len(excerpt) <= EXCERPT + 2
    assert "\n" not in excerpt
    assert all(0 <= start < end <= len(excerpt) for start, end in ranges)
    assert all(a[1] <= b[0] for a, b in pairwise(ranges))
    assert "needle" in Folded(excerpt[slice(*ranges[0])]).text


def test_the_words_of_a_phrase_are_one_range_and_ranges_do_not_overlap() -> None:
    assert found("The big, big bird!", *parsed('"big bird"')) == ["big bird"]
    assert found("The big, big bird!", *parsed('big "big bird" bi')) == ["big", "big bird"]
    assert found("東京都", *parsed("東京")) == ["東京"]
    assert found("bigger", *parsed("big ")) is None
    assert found("bigger", *parsed("big")) == ["bigger"]
    assert found("a" * 100, *parsed("a" * 99 + " ")) == ["a" * 100]  # 64 characters count


def test_an_excerpt_of_one_endless_word_is_cut() -> None:
    for query in ("x", "x" * 10_000 + " "):
        line = Matcher(parsed(query)).excerpt("x" * 10_000)
        assert line == ("x" * EXCERPT + "…", ((0, EXCERPT),))


@pytest.mark.parametrize(
    "text", ["東京" * 100_000, "a\u0301" * 100_000, "é " * 100_000, "\u0301" * 200_000, "—" * 200_000]
)
def test_a_place_far_inside_of_a_long_text_is_right(text: str) -> None:
    assert found(f"{text} Needle, {text}", *parsed("needle")) == ["Needle"]


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
