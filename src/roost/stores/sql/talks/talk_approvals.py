"""Approvals of a talk, each with the message it belongs to.

A run that was parked is continued by another run, whose answer replaces the first one. So an approval is matched with
messages by the envelope of their runs. A branch has copies of messages, and so the approvals of another talk.
"""

from __future__ import annotations

from collections.abc import Sequence

from roost.core.journal.approvals import TalkApproval
from roost.ports import Row, Tx
from roost.stores.sql.journal.approvals import APPROVAL, WAITED_FOR, approval_of
from roost.stores.sql.talks.talks import found

_COPIED = (
    " OR envelope_id IN (SELECT r.root FROM messages m JOIN runs r ON r.run_id = m.run_id"
    " WHERE m.talk_id = :talk AND r.talk_id <> :talk)"
)
_IN_INBOX = "EXISTS (SELECT 1 FROM inbox i WHERE i.envelope_id = approvals.envelope_id AND i.lane = :talk)"


def listed(tx: Tx, user_id: str, talk_id: str, limit: int) -> list[TalkApproval]:
    """Return the newest approvals that this user decides, oldest first.

    A question that was withdrawn, and will be asked again, is left out. Raise NotFound if there is no such talk.
    """
    ids = {"talk": talk_id, "user": user_id, "limit": limit}
    talk = tx.one("SELECT parent, answer_seq FROM talks WHERE talk_id = :talk AND user_id = :user", ids)
    parent, open_seq = found(talk)
    rows = tx.read(
        f"SELECT {APPROVAL}, envelope_id, seq, {_IN_INBOX}, {WAITED_FOR} FROM approvals"
        f" WHERE (holder = :talk{_COPIED if parent else ''}) AND user_id = :user"
        " ORDER BY approval_id DESC LIMIT :limit",
        ids,
    )
    answers = _answers(tx, talk_id, rows)
    approvals = (_talk_approval(row, open_seq, answers) for row in reversed(rows))
    return [one for one in approvals if one is not None]


def _answers(tx: Tx, talk_id: str, rows: Sequence[Row]) -> dict[str, int]:
    """Return the number of the last answer that is shown, by envelope and by run."""
    if not rows:
        return {}
    numbers: dict[str, int] = {}
    found = tx.read(
        "SELECT m.run_id, r.root, m.seq FROM messages m LEFT JOIN runs r ON r.run_id = m.run_id"
        " WHERE m.talk_id = :talk AND m.seq >= :first AND m.run_id IS NOT NULL AND m.status <> 'withdrawn'"
        " ORDER BY m.seq",
        {"talk": talk_id, "first": min(row[-3] for row in rows)},
    )
    for run_id, envelope_id, seq in found:
        numbers[run_id] = seq
        if envelope_id:
            numbers[envelope_id] = seq
    return numbers


def _talk_approval(row: Row, open_seq: int, answers: dict[str, int]) -> TalkApproval | None:
    *columns, envelope_id, asked_at, is_current, is_pending = row
    approval = approval_of(columns)
    if approval.decision is None and bool(is_current) is not bool(is_pending):
        return None  # it will be asked again, or another talk asks
    if is_current:
        seq = open_seq or None
    else:
        seq = answers.get(envelope_id) or answers.get(approval.run_id or "") or asked_at or None
    return TalkApproval(approval, seq, bool(is_pending))
