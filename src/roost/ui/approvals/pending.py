"""Pending approvals of a user, and their decision on the pages."""

from __future__ import annotations

from roost.core.journal.approvals import Approval
from roost.errors import RoostError, public
from roost.service import AgentService
from roost.ui.messages.approval_cards import ALWAYS, APPROVE
from roost.ui.talk_reader import TalkReader

NEWEST = 200
"""Most approvals that are read at once."""
ANSWER = "answer"
"""Action that records the result of an interrupted call."""


def waiting(service: AgentService, user: str) -> tuple[Approval, ...]:
    """Return all pending approvals of this user, oldest first."""
    return tuple(reversed(service.approvals.list(user, limit=NEWEST)))


def here(found: tuple[Approval, ...], reading: TalkReader | None) -> tuple[Approval, ...]:
    """Return the pending approvals of the open talk."""
    if reading is None or not reading.running:
        return ()
    return tuple(approval for approval in found if approval.talk_session_id == reading.talk_id)


def record(service: AgentService, user: str, approval_id: str, action: str, text: str = "") -> None:
    """Record a decision; `text` is the reason for declining, or the result."""
    if action == APPROVE:
        service.approvals.approve(user, approval_id)
    elif action == ALWAYS:
        service.approvals.allow_always(user, approval_id)
    elif action == ANSWER:
        service.approvals.answer(user, approval_id, text)
    else:
        service.approvals.decline(user, approval_id, reason=text.strip() or None)


def decide(service: AgentService, user: str, approval_id: str, action: str, reason: str = "") -> str:
    """Record the decision; return the problem, if there is one."""
    try:
        record(service, user, approval_id, action, reason)
    except RoostError as error:
        return public(error)
    return ""
