"""Resting: what waits for a person is due when they have decided, and holds its lane until then.

Of a talk the answer stays open as far as it came. The run that is given the decision says all of it anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from roost.core.envelopes import NEVER
from roost.core.messages import Status
from roost.ports import Tx
from roost.stores.statements import bulk

RESTS = f"due >= {NEVER:.0f}"
"""Whether a row of the inbox waits for a person."""
_IDLE = f"({RESTS} OR (due = 0 AND attempts = 0))"
"""Whether nobody has what was put to rest: a person has not decided yet, or nobody has taken it up since."""
_OF_TALK = "EXISTS (SELECT 1 FROM inbox WHERE lane = talks.talk_id AND kind <> 'task' AND {0})"
RESTING_TALK = _OF_TALK.format(RESTS)
IDLE_TALK = _OF_TALK.format(_IDLE)
_DECIDED = (
    "SELECT 1 FROM approvals a JOIN steps s ON s.envelope_id = a.envelope_id AND s.step = a.step"
    " WHERE a.envelope_id = :id AND a.decision <> '' AND s.outcome = 'asked' LIMIT 1"
)


def rest(tx: Tx, envelope_ids: Sequence[str], *, goes_on: bool = False) -> bool | None:
    """Until a person has decided; the try does not count. False: they have meanwhile. None: it is gone.

    Whoever decides after this finds what this transaction leaves. `goes_on`: if they have, it is tried at once.
    """
    ids = {"id": envelope_ids[0]}
    tx.read(f"SELECT approval_id FROM approvals WHERE envelope_id = :id ORDER BY approval_id{tx.for_update}", ids)
    decided = tx.one(_DECIDED, ids) is not None
    due, attempts = (0.0, int(goes_on)) if decided else (NEVER, 0)
    sql = f"UPDATE inbox SET attempts = {attempts}, due = {due:.0f} WHERE envelope_id IN"
    return not decided if bulk.change(tx, sql, sorted(envelope_ids), " RETURNING envelope_id") else None


def is_idle(tx: Tx, talk_id: str) -> bool:
    """Whether its run was put to rest, and nobody has taken it up."""
    return tx.one(f"SELECT 1 FROM talks WHERE talk_id = :talk AND {IDLE_TALK}", {"talk": talk_id}) is not None


def leave(tx: Tx, talk_id: str, answer_seq: int, revision: int, *, again: bool) -> Status | None:
    """Close what a run has said that was put to rest: if it is said again, or was nothing, it is withdrawn."""
    rows = tx.write(
        "UPDATE messages SET revision = :revision,"
        " status = CASE WHEN :again = 1 OR content = '' THEN 'withdrawn' ELSE 'interrupted' END"
        " WHERE talk_id = :talk AND seq = :seq AND status = 'streaming' RETURNING status",
        {"talk": talk_id, "seq": answer_seq, "revision": revision, "again": int(again)},
    )
    tx.write("UPDATE talks SET answer_seq = 0 WHERE talk_id = :talk", {"talk": talk_id})
    return Status(rows[0][0]) if rows else None


def interrupt(tx: Tx, talk_id: str, answer_seq: int, revision: int, now: float) -> None:
    """End a run that rests as one that runs: what it said was the answer; if nothing, the next one answers it too."""
    ids = {"talk": talk_id, "now": now}
    rows = f"lane = :talk AND kind <> 'task' AND {_IDLE}"
    if answer_seq and leave(tx, talk_id, answer_seq, revision, again=False) is Status.INTERRUPTED:
        done = len(tx.write(f"DELETE FROM inbox WHERE {rows} RETURNING seq", ids))
        tx.write("UPDATE talks SET waiting = waiting - :done WHERE talk_id = :talk", {**ids, "done": done})
        return
    tx.write(
        "UPDATE steps SET outcome = 'interrupted', done = 1, ended = :now WHERE outcome = 'asked' AND envelope_id IN"
        f" (SELECT envelope_id FROM inbox WHERE {rows})",
        ids,
    )
    tx.write(f"UPDATE inbox SET due = :now WHERE {rows}", ids)


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
