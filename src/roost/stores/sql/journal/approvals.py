"""Approvals: questions to people about steps, and their decisions.

Every query includes the owner: another user's approval is `NotFound`, like one that does not exist.
"""

from __future__ import annotations

import json

from roost.core.journal.approvals import Approval, Decided, Decision, Question
from roost.core.talks.messages import at
from roost.errors import Conflict, NotFound
from roost.ports import Row, Tx
from roost.stores import locking
from roost.stores.sql.tables.parked import unpark

APPROVAL = (
    "approval_id, user_id, agent_id, talk_id, run_id, step, kind, tool, arguments, created, decision, decided, note,"
    " profile"
)
WAITED_FOR = (
    "decision = '' AND EXISTS (SELECT 1 FROM inbox i WHERE i.envelope_id = approvals.envelope_id)"
    " AND EXISTS (SELECT 1 FROM steps s WHERE s.envelope_id = approvals.envelope_id AND s.step = approvals.step"
    " AND s.outcome = 'asked')"
)
"""Condition: a run waits for the decision. Its step is not over and was not asked again."""
_SEEN = f"{APPROVAL}, (SELECT t.user_id FROM talks t WHERE t.talk_id = approvals.talk_id)"
"""Columns of an approval, and the user of its talk."""


def get(tx: Tx, user_id: str, approval_id: str) -> Approval:
    return _seen(_row(tx, user_id, approval_id))


def listed(tx: Tx, user_id: str, all: bool, limit: int, before: str) -> list[Approval]:
    """Return approvals, newest first, before `before`: those that are waited for, or all."""
    waited_for = "" if all else f" AND {WAITED_FOR}"
    rows = tx.read(
        f"SELECT {_SEEN} FROM approvals WHERE user_id = :user AND approval_id < :before{waited_for}"
        " ORDER BY approval_id DESC LIMIT :limit",
        {"user": user_id, "before": before, "limit": limit},
    )
    return [_seen(row) for row in rows]


def _by_holder(tx: Tx, user_id: str, approval_id: str, *_: object) -> locking.Rows:
    row = tx.one("SELECT talk_id, holder FROM approvals WHERE approval_id = :id", {"id": approval_id})
    if row is None:
        return ()
    return (locking.agent(row[1]) if row[0] is None else locking.talk(row[0]),)


@locking.locks(_by_holder)
def decide(tx: Tx, user_id: str, approval_id: str, decision: Decision, note: str | None, now: float) -> Decided:
    """Decide an approval. Raise Conflict if it was decided before, or no run waits for it any more."""
    *columns, talker = _row(tx, user_id, approval_id, tx.for_update)
    known = approval_of(columns)
    if known.decision is not None:
        if known.decision is decision and known.note == note:
            return Decided(known, talker=talker or "", is_new=False)
        raise Conflict(f"this approval was {known.decision} already: it cannot be decided again")
    rows = tx.write(
        "UPDATE approvals SET decision = :decision, note = :note, decided = :now"
        f" WHERE approval_id = :id AND {WAITED_FOR} RETURNING {APPROVAL}, envelope_id",
        {"id": approval_id, "decision": decision, "note": note, "now": now},
    )
    if not rows:
        raise Conflict("no run waits for this approval any more: its step is over, was stopped or was asked again")
    approval = approval_of(rows[0][:-1])
    return Decided(approval, *unpark(tx, rows[0][-1], approval.talk_session_id))


def of_step(tx: Tx, envelope_id: str, step: int) -> Approval | None:
    """Return the newest approval of a step, regardless of its owner."""
    row = tx.one(
        f"SELECT {APPROVAL} FROM approvals WHERE envelope_id = :id AND step = :step ORDER BY approval_id DESC LIMIT 1",
        {"id": envelope_id, "step": step},
    )
    return None if row is None else approval_of(row)


def _row(tx: Tx, user_id: str, approval_id: str, ending: str = "") -> Row:
    row = tx.one(
        f"SELECT {_SEEN} FROM approvals WHERE user_id = :user AND approval_id = :id{ending}",
        {"user": user_id, "id": approval_id},
    )
    if row is None:
        raise NotFound(f"there is no approval {approval_id!r:.80}: its run was removed, or it never existed")
    return row


def _seen(row: Row) -> Approval:
    *columns, talker = row
    return approval_of(columns).seen_by_owner(talker)


def approval_of(row: Row) -> Approval:
    approval_id, user_id, agent_id, talk_id, run_id, step, kind, tool, arguments, created, *decision = row
    decided_as, decided, note, profile = decision
    return Approval(
        approval_id,
        user_id,
        agent_id,
        talk_id,
        run_id,
        step,
        Question(kind),
        tool,
        json.loads(arguments),
        at(created),
        Decision(decided_as) if decided_as else None,
        None if decided is None else at(decided),
        note,
        profile,
    )
