"""Approvals of a talk as cards of the message list: what was asked, the buttons to decide, and the decision."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from roost.core.journal.approvals import Approval, Decision, Question, TalkApproval, folded, shown_name
from roost.ui.messages.argument_table import argument_table
from roost.ui.rendering.escaping import escape

CARDS = 200
"""Cards of a talk, the newest ones."""
SHOWN = 1_000
"""Characters shown of a reason, and of an argument after the decision; before it, all can be read."""
APPROVE, DECLINE, ALWAYS = "approve", "decline", "always"
"""Actions of a card."""
_VERDICTS = {
    Question.CALL: {Decision.APPROVED: "Approved by you", Decision.DECLINED: "Declined by you"},
    Question.UNKNOWN: {Decision.APPROVED: "Run again by you", Decision.DECLINED: "Given up by you"},
    Question.STEP: {Decision.APPROVED: "Run again by you", Decision.DECLINED: "Given up by you"},
}


def labels(kind: Question) -> dict[str, str]:
    """Return the actions that decide such a question, and the labels of their buttons."""
    if kind is Question.CALL:
        return {APPROVE: "Approve", DECLINE: "Decline", ALWAYS: "Always allow"}
    return {APPROVE: "Run again", DECLINE: "Give up"}


def explanation(approval: Approval) -> str:
    """Return what one has to know about an interrupted call; empty for others."""
    if approval.kind is Question.CALL:
        return ""
    command = f"roost approvals answer {approval.approval_id[-8:]} RESULT"
    return f"Roost stopped during this step. If it is done, record its result in a terminal: {command}"


def approval_cards(found: Iterable[TalkApproval]) -> list[dict[str, Any]]:
    return [_card(one) for one in found]


def _card(one: TalkApproval) -> dict[str, Any]:
    """Return a card: HTML is in `html` and `note`, everything else is plain text."""
    approval = one.approval
    name = escape(shown_name(approval.tool))
    state = "needs your approval" if one.is_pending else ""
    head = f'<div class="tool-head"><strong>{name}</strong><span>{state}</span></div>'
    hint = f"<p>{escape(explanation(approval))}</p>" if one.is_pending and approval.kind is not Question.CALL else ""
    table = argument_table(approval, None if one.is_pending else SHOWN)
    card: dict[str, Any] = {
        "id": approval.approval_id,
        "seq": one.seq,
        "html": head + hint + table,
        "label": f"Approval of {shown_name(approval.tool)}",
        "actions": labels(approval.kind) if one.is_pending else {},
    }
    if not one.is_pending:
        card |= {"verdict": verdict(approval), "note": _note(approval)}
        card["decided"] = approval.decided.timestamp() if approval.decided else None
    return card


def verdict(approval: Approval) -> str:
    """Return how an approval was decided."""
    if approval.decision is None:
        return "Not decided"
    if approval.decision is Decision.ALLOWED:
        return "Always allowed by you"
    return _VERDICTS[approval.kind].get(approval.decision, "Result given by you")


def _note(approval: Approval) -> str:
    return escape(folded(approval.note or "", SHOWN))
