"""A17: by which words a memory is found, and how well."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.brain_data import memories
from roost.errors import Invalid, LimitReached

ANYTHING = st.text(st.characters(codec=None))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Hello, WORLD! hello", ("hello", "world")),
        ("don't under_score 3.14", ("don", "t", "under", "score", "3", "14")),
        ("Café CAFE cafe\u0301", ("cafe",)),
        ("Straße STRASSE", ("strasse",)),
        ("İstanbul", ("istanbul",)),
        ("ﬁne ②", ("fine", "2")),
        ("日本語 テスト", ("日", "本", "語", "テ", "ス", "ト")),
        ("ガカ", ("カ",)),
        ("हिन्दी भाषा", ("हिन्दी", "भाषा")),
        ("한국어", ("한국어",)),
        ("🎉 party ❤️", ("🎉", "party", "❤")),
        ("soft\u00adhyphen", ("softhyphen",)),
        ('NEAR("a" -b* OR :c', ("near", "a", "b", "or", "c")),
        ("", ()),
        ('"*-^:(){}\0\ud800', ()),
        ("x" * 65, ("x" * 64,)),
    ],
)
def test_words_are_compared_without_case_and_accents(text: str, found: tuple[str, ...]) -> None:
    assert memories.words(text) == found


@given(ANYTHING)
def test_any_text_has_words_that_every_store_can_hold(text: str) -> None:
    found = memories.words(text)
    assert len(set(found)) == len(found)
    for word in found:
        assert 0 < len(word) <= memories.LONGEST_WORD
        assert "\0" not in word
        assert word.encode()
    assert memories.words(" ".join(found)) == found


@given(ANYTHING)
def test_the_way_a_text_is_encoded_makes_no_difference(text: str) -> None:
    forms = {memories.words(unicodedata.normalize(form, text)) for form in ("NFC", "NFD", "NFKC", "NFKD")}
    assert forms == {memories.words(text)}


def test_what_has_more_of_the_query_is_better_found() -> None:
    wanted = memories.asked("what is the colour of the door")
    assert wanted is not None
    scores = [memories.score(text, wanted) for text in ("Nothing.", "It is the one", "A colour", "The COLOUR is green")]
    assert scores == [0, 5, 6, 11]


def test_an_empty_query_asks_for_the_newest_and_one_without_words_for_nothing() -> None:
    assert memories.asked(" \n") is None
    assert memories.asked("?!") == ()
    with pytest.raises(Invalid, match="the query must be a text, not int"):
        memories.asked(5)


def test_a_whole_letter_can_be_a_query() -> None:
    letter = " ".join(f"word{n}" for n in range(1_000_000))
    wanted = memories.asked(letter)
    assert wanted is not None
    assert (wanted[0], len(wanted)) == ("word0", memories.QUERY_WORDS)


def test_what_is_too_long_or_too_much_is_refused_with_what_to_do() -> None:
    assert memories.check_text("é" * 10, 10) == "é" * 10
    for text in ("", "\0", "\ud800", "x" * 11, "é" * 11, 5):
        with pytest.raises(Invalid, match="the memory"):
            memories.check_text(text, 10)
    memories.check_room(9, 10)
    with pytest.raises(LimitReached, match="10 memories, which is the limit: have it forget some"):
        memories.check_room(10, 10)
