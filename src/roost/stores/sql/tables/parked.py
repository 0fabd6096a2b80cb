"""Parked envelopes: they wait for a person's decision, and hold their lane until then.

In a talk the answer stays open. The run that gets the decision writes it anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from roost.core.envelopes.envelope import EnvelopeStatus
from roost.core.talks.messages import Status
from roost.ports import Tx
from roost.stores import bulk

PARKED = "status = 'parked'"
"""Condition: the inbox row waits for a person."""
_UNCLAIMED = "status IN ('parked', 'decided')"
"""Condition: parked, or decided and not claimed since."""
_OF_TALK = "EXISTS (SELECT 1 FROM inbox WHERE lane = talks.talk_id AND kind <> 'task' AND {0})"
PARKED_TALK = _OF_TALK.format(PARKED)
UNCLAIMED_TALK = _OF_TALK.format(_UNCLAIMED)
_DECIDED = (
    "SELECT 1 FROM approvals a JOIN steps s ON s.envelope_id = a.envelope_id AND s.step = a.step"
    " WHERE a.envelope_id = :id AND a.decision <> '' AND s.outcome = 'asked' LIMIT 1"
)


def park(tx: Tx, envelope_ids: Sequence[str], *, retry_now: bool = False) -> bool | None:
    """Park envelopes until a person decides; the attempt is not counted.

    Return False if they have decided meanwhile, None if the envelopes are gone. A later decision finds them parked.
    `retry_now`: if the decision is there, run again at once.
    """
    first = {"id": envelope_ids[0]}
    tx.read(f"SELECT approval_id FROM approvals WHERE envelope_id = :id ORDER BY approval_id{tx.for_update}", first)
    decided = tx.one(_DECIDED, first) is not None
    after = EnvelopeStatus.RESUMED if retry_now else EnvelopeStatus.DECIDED
    status = after if decided else EnvelopeStatus.PARKED
    sql, ids = "UPDATE inbox SET status = ?, due = 0, suspect = 0 WHERE envelope_id IN", sorted(envelope_ids)
    return not decided if bulk.write(tx, sql, ids, " RETURNING envelope_id", [status]) else None


def is_unclaimed(tx: Tx, talk_id: str) -> bool:
    """Return whether the talk's run is parked, or was decided and not claimed since."""
    return tx.one(f"SELECT 1 FROM talks WHERE talk_id = :talk AND {UNCLAIMED_TALK}", {"talk": talk_id}) is not None


def close_answer(tx: Tx, talk_id: str, answer_seq: int, revision: int, *, again: bool) -> Status | None:
    """Close the answer of a parked run; withdraw it if it will be written again or is empty."""
    rows = tx.write(
        "UPDATE messages SET revision = :revision,"
        " status = CASE WHEN :again = 1 OR content = '' THEN 'withdrawn' ELSE 'interrupted' END"
        " WHERE talk_id = :talk AND seq = :seq AND status = 'streaming' RETURNING status",
        {"talk": talk_id, "seq": answer_seq, "revision": revision, "again": int(again)},
    )
    tx.write("UPDATE talks SET answer_seq = 0 WHERE talk_id = :talk", {"talk": talk_id})
    return Status(rows[0][0]) if rows else None


def interrupt(tx: Tx, talk_id: str, answer_seq: int, revision: int, now: float) -> None:
    """End a parked run like a running one: its text is the answer; without text the next run answers."""
    ids = {"talk": talk_id, "now": now}
    rows = f"lane = :talk AND kind <> 'task' AND {_UNCLAIMED}"
    if answer_seq and close_answer(tx, talk_id, answer_seq, revision, again=False) is Status.INTERRUPTED:
        done = len(tx.write(f"DELETE FROM inbox WHERE {rows} RETURNING seq", ids))
        tx.write("UPDATE talks SET waiting = waiting - :done WHERE talk_id = :talk", {**ids, "done": done})
        return
    tx.write(
        "UPDATE steps SET outcome = 'interrupted', done = 1, ended = :now WHERE outcome = 'asked' AND envelope_id IN"
        f" (SELECT envelope_id FROM inbox WHERE {rows})",
        ids,
    )
    tx.write(f"UPDATE inbox SET status = 'ready', due = :now WHERE {rows}", ids)


def unpark(tx: Tx, envelope_id: str, talk_id: str | None) -> tuple[bool, str]:
    """Unpark after a decision; return whether it was parked, and the talk's user if it is a talk."""
    row = None
    if talk_id is not None:
        row = tx.one("SELECT user_id FROM talks WHERE talk_id = :talk", {"talk": talk_id})
    condition = "envelope_id = :id" if talk_id is None else "lane = :talk AND kind <> 'task'"
    unparked = tx.write(
        f"UPDATE inbox SET status = 'decided' WHERE {condition} AND {PARKED} RETURNING envelope_id",
        {"id": envelope_id, "talk": talk_id},
    )
    return bool(unparked), str(row[0]) if row else ""
