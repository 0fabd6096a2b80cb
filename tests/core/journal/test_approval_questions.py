"""B3: who decides sees all of what is asked: nothing is hidden, and what is folded says so."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.journal.approvals import LONG, Approval, Question, visible
from roost.core.talks.messages import at
from roost.runtime.journal.approval_wait import MAX_MAIL_CHARS, MAX_MAIL_ROWS, _mail_text

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def an_approval(arguments: dict[str, Any], kind: Question = Question.CALL, tool: str = "pay") -> Approval:
    return Approval("approval_12345678", "ann", "d", None, "run_1", 1, kind, tool, arguments, at(0.0))


@given(VALUES, st.sampled_from([None, 2]))
def test_what_is_shown_is_the_whole_value_and_nothing_in_it_is_unseen(value: Any, indent: int | None) -> None:
    text = visible(value, indent)
    assert json.loads(text) == json.loads(json.dumps(value))
    assert text.replace("\n", "").isprintable()
    assert "\n" not in text or indent is not None


@pytest.mark.parametrize("evil", ["\x1b[2J", "\u202e", "\u200b", "\x9b", "\u2028", "\U000e0041", "\ud800"])
def test_no_character_of_a_question_is_unseen(evil: str) -> None:
    asked = an_approval({f"to{evil}": f"me{evil}"}, tool=f"pay{evil}").question()
    assert asked.isprintable()
    assert asked.count(json.dumps(evil)[1:-1]) == 3


def test_a_long_argument_hides_no_other_and_says_how_long_it_is() -> None:
    one = an_approval({"subject": "hello", "body": "x" * 10_000, "to": "everyone@example.org"})
    asked = one.question()
    assert one.is_folded
    assert f'"body": "{"x" * (LONG - 1)}… [10,002 characters in all]' in asked
    assert '"to": "everyone@example.org"' in asked
    exact = an_approval({"body": "x" * (LONG - 2)})
    assert not exact.is_folded
    assert "characters in all" not in exact.question()


@pytest.mark.parametrize("kind", [Question.CALL, Question.UNKNOWN])
def test_a_mail_has_all_arguments_and_where_it_cannot_says_how_to_see_them(kind: Question) -> None:
    _, body = _mail_text(an_approval({"body": "x" * 50_000, "to": "everyone"}, kind))
    assert "x" * 50_000 in body
    assert '    "to": "everyone"\n' in body
    assert "characters in all" not in body
    _, body = _mail_text(an_approval({"body": "x" * 2 * MAX_MAIL_CHARS, "to": "everyone"}, kind))
    assert "[200,002 characters in all]" in body
    assert '    "to": "everyone"\n' in body
    assert "all 2 arguments in full: roost approvals show approval_12345678" in body
    _, body = _mail_text(an_approval({f"a{number}": "x" * 300 for number in range(1_000)}, kind))
    assert len(body) < 2 * MAX_MAIL_ROWS * LONG
    assert "all 1,000 arguments in full" in body
