"""Cards of approvals: everything that tools, models and people wrote is text, and every character is visible."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from roost.core.journal.approvals import Decision, Question, TalkApproval
from roost.core.talks.messages import at
from roost.ui.messages.approval_cards import approval_cards
from roost.ui.messages.argument_table import argument_table
from tests.core.journal.test_approval_questions import an_approval

NASTY = '<script>alert(1)</script> ![x](http://e.example/x.png) **b** \u202eevil\u2066 "q" \x1b[31m'


def card(approval: Any, is_pending: bool = False) -> dict[str, Any]:
    [made] = approval_cards([TalkApproval(approval, 2, is_pending)])
    return made


@pytest.mark.parametrize("is_pending", [True, False])
def test_names_arguments_and_reasons_are_text(is_pending: bool) -> None:
    asked = replace(an_approval({NASTY: NASTY}), tool=NASTY, decision=Decision.DECLINED, decided=at(5.0), note=NASTY)
    made = card(asked if not is_pending else replace(asked, decision=None, note=None), is_pending)
    for html in (made["html"], made.get("note", "")):
        assert "<script" not in html
        assert "\x1b" not in html
        assert "\u202e" not in html.replace('<bdi class="control" data-control="U+202E">\u202e</bdi>', "")
    assert "\\u202eevil" in made["html"]
    assert "\u202e" not in made["label"]


@pytest.mark.parametrize(
    ("kind", "decision", "verdict"),
    [
        (Question.CALL, Decision.APPROVED, "Approved by you"),
        (Question.CALL, Decision.ALLOWED, "Always allowed by you"),
        (Question.CALL, Decision.ANSWERED, "Result given by you"),
        (Question.UNKNOWN, Decision.APPROVED, "Run again by you"),
        (Question.STEP, Decision.DECLINED, "Given up by you"),
        (Question.CALL, None, "Not decided"),
    ],
)
def test_a_decided_card_says_how(kind: Question, decision: Decision | None, verdict: str) -> None:
    made = card(replace(an_approval({}), kind=kind, decision=decision))
    assert (made["verdict"], made["actions"]) == (verdict, {})


def test_only_a_call_can_be_allowed_always() -> None:
    made = card(replace(an_approval({}), kind=Question.UNKNOWN), is_pending=True)
    assert made["actions"] == {"approve": "Run again", "decline": "Give up"}
    assert "roost approvals answer 12345678 RESULT" in made["html"]


def test_all_arguments_can_be_read_before_the_decision_and_long_ones_are_folded() -> None:
    long = "<b>" * 20_000 + "THE END"
    one = an_approval({"to": "a\u202eb\u200bü", "text": long})
    html = argument_table(one)
    assert '<th scope="row">to</th><td>&quot;a\\u202eb\\u200bü&quot;</td>' in html
    assert "(60,009 characters, click to show all)</summary>" in html
    assert html.count("&lt;b&gt;") >= 20_000
    assert "THE END" in html
    assert "<b>" not in html
    assert len(card(replace(one, decision=Decision.APPROVED))["html"]) < 10_000
    assert argument_table(an_approval({})) == ""
