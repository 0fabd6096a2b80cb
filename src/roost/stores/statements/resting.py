"""Resting: what waits for a person is due when they have decided, and holds its lane until then."""

from __future__ import annotations

from roost.core.envelopes import NEVER
from roost.ports import Tx

RESTS = f"due >= {NEVER:.0f}"
"""Whether a row of the inbox waits for a person."""
_DECIDED = (
    "SELECT 1 FROM approvals a JOIN steps s ON s.envelope_id = a.envelope_id AND s.step = a.step"
    " WHERE a.envelope_id = :id AND a.decision <> '' AND s.outcome = 'asked' LIMIT 1"
)


def is_decided(tx: Tx, envelope_id: str) -> bool:
    """Whether a person has decided meanwhile; whoever decides after this finds what this transaction leaves."""
    ids = {"id": envelope_id}
    tx.read(f"SELECT approval_id FROM approvals WHERE envelope_id = :id ORDER BY approval_id{tx.for_update}", ids)
    return tx.one(_DECIDED, ids) is not None


def rest(tx: Tx, envelope_id: str) -> bool:
    """Until a person has decided; the try does not count. False: it is gone."""
    due = 0.0 if is_decided(tx, envelope_id) else NEVER
    return bool(
        tx.write(
            "UPDATE inbox SET due = :due, attempts = 0 WHERE envelope_id = :id RETURNING due",
            {"id": envelope_id, "due": due},
        )
    )


def take_up(tx: Tx, envelope_id: str, talk_id: str | None) -> tuple[bool, str]:
    """A person has decided: whether it had been put to rest, and whose talk it is, if it is one."""
    row = None
    if talk_id is not None:
        row = tx.one("SELECT user_id FROM talks WHERE talk_id = :talk", {"talk": talk_id})
    whole = "envelope_id = :id" if talk_id is None else "lane = :talk AND kind <> 'task'"
    taken = tx.write(
        f"UPDATE inbox SET due = 0 WHERE {whole} AND {RESTS} RETURNING due", {"id": envelope_id, "talk": talk_id}
    )  # fmt: skip
    return bool(taken), str(row[0]) if row else ""
