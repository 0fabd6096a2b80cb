"""Labels of kinds, which all pages share."""

from __future__ import annotations

from roost.core.envelopes.dead_letters import LetterKind
from roost.core.envelopes.envelope import Kind
from roost.ui import kinds


def test_every_kind_of_work_and_of_dead_letters_has_a_label() -> None:
    assert {str(one) for one in (*Kind, *LetterKind)} <= set(kinds.LABELS)
    assert kinds.label(Kind.ANSWER) == kinds.label(LetterKind.ANSWER) == "Late answer"


def test_kinds_are_counted_in_the_plural() -> None:
    assert [kinds.PLURALS[name] for name in ("talk", "mail", "answer", "outgoing")] == [
        "Talks",
        "Mail",
        "Late answers",
        "Not sent",
    ]


def test_a_kind_of_a_newer_program_is_named_as_it_is() -> None:
    assert kinds.label("errand") == "Errand"
