"""Titles read as they were typed, and errors as sentences."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from roost.errors import Invalid
from roost.ui.text import as_sentence, parsed_json, plain, sentence


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=60))
def test_a_title_reads_as_it_was_typed(title: str) -> None:
    inline = MarkdownIt("commonmark").parseInline(plain(title))[0]
    shown = "".join(child.content for child in inline.children or ())
    assert {child.type for child in inline.children or ()} <= {"text", "text_special"}
    assert shown.replace("\u2060", "") == " ".join(title.split()).replace("\u2060", "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{a}", "Expecting property name"),
        ("[" * 100_000, "it is nested too deeply"),
        ("9" * 5_000, "Exceeds the limit"),
    ],
)
def test_json_that_cannot_be_read_is_a_problem_of_the_one_who_typed_it(text: str, reason: str) -> None:
    with pytest.raises(Invalid, match=f"the data is not JSON: {reason}"):
        parsed_json(text, "the data is not JSON")


@pytest.mark.parametrize("title", [":material/home:", ":smile:", "a -> b", ":red[x]", "$x$", ":streamlit:", ":+1:"])
def test_streamlits_own_signs_in_titles_are_broken_up(title: str) -> None:
    assert "\u2060" in plain(title) or "\\$" in plain(title)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("the title must not be empty", "The title must not be empty."),
        ("Try again.", "Try again."),
        ("really?", "Really?"),
        ("roost.db was written by a newer Roost", "roost.db was written by a newer Roost."),
        ("'roost.db' is in use", "'roost.db' is in use."),
        ("2 of 2 workers are down", "2 of 2 workers are down."),
        ("wait, then\n try again", "Wait, then try again."),
    ],
)
def test_errors_are_shown_as_sentences(said: str, shown: str) -> None:
    assert sentence(ValueError(said)) == shown
    assert as_sentence(said) == plain(shown)
