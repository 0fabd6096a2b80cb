"""Answers: messages that a run opens, extends and closes.

Each statement that writes for a run checks the talk's epoch.
"""

from __future__ import annotations

from roost.core.talks import side_channels
from roost.core.talks.messages import Message, Sender, Status, at
from roost.core.talks.runs import Opened, TalkUpdate
from roost.ports import Row, Tx
from roost.stores import locking
from roost.stores.sql.tables import runs
from roost.stores.sql.talks.messages import (
    COLUMNS,
    MESSAGE,
    insert,
    message_of,
    saved,
)


@locking.locks(locking.by_talk)
def open_answer(tx: Tx, talk_id: str, run_id: str, epoch: int, content: str, notes: str = "") -> Opened | None:
    """Give the run's answer its number, with its first text and notes; an answer that has one keeps it.

    Return None if the run was superseded before.
    """
    ids = {"talk": talk_id, "epoch": epoch, "run": run_id, "content": content, "notes": notes}
    rows = tx.write(
        "UPDATE talks SET last_seq = last_seq + 1, revision = revision + 1, answer_seq = last_seq + 1"
        " WHERE talk_id = :talk AND epoch = :epoch AND answer_seq = 0 RETURNING last_seq, revision, roost_now()",
        ids,
    )
    if rows:
        seq, revision, now = rows[0]
        unpacked = side_channels.unpack(notes)
        message = Message(seq, Sender.AGENT, content, Status.STREAMING, at(now), run_id=run_id, notes=unpacked)
        insert(tx, talk_id, message, revision, now, notes=notes)
        return Opened(message, revision)
    # An earlier attempt that seemed to fail may have opened it: then it has its number.
    opened = tx.write(
        "UPDATE messages AS m SET content = :content, notes = :notes WHERE m.talk_id = :talk AND m.run_id = :run"
        f" AND m.seq = (SELECT t.answer_seq FROM talks t WHERE t.talk_id = :talk AND t.epoch = :epoch{tx.for_update})"
        f" RETURNING {', '.join(COLUMNS)}",
        ids,
    )
    return Opened(message_of(opened[0]), opened[0][7]) if opened else None


@locking.locks(locking.by_talk)
def checkpoint(tx: Tx, talk_id: str, run_id: str, epoch: int, part: int, content: str, notes: str = "") -> bool:
    """Store the text and notes since the last checkpoint, as part 1, 2, 3 …

    Do nothing and return False if the run was superseded, or if the previous part was not stored.
    """
    rows = tx.write(
        "INSERT INTO parts (talk_id, seq, part, content, notes)"
        " SELECT t.talk_id, t.answer_seq, :part, :content, :notes FROM talks t"
        " JOIN messages m ON m.talk_id = t.talk_id AND m.seq = t.answer_seq"
        " WHERE t.talk_id = :talk AND t.epoch = :epoch AND m.run_id = :run AND (:part = 1 OR EXISTS"
        " (SELECT 1 FROM parts p WHERE p.talk_id = m.talk_id AND p.seq = m.seq AND p.part = :part - 1))"
        f"{locking.of_table(tx, 't')} ON CONFLICT (talk_id, seq, part)"
        " DO UPDATE SET content = excluded.content, notes = excluded.notes RETURNING part",
        {"talk": talk_id, "epoch": epoch, "part": part, "content": content, "notes": notes, "run": run_id},
    )
    return bool(rows)


@locking.locks(locking.by_talk)
def split_answer(tx: Tx, talk_id: str, run_id: str, epoch: int, content: str, notes: str = "") -> TalkUpdate:
    """Close the current message while its run continues in a new one."""
    row = lock(tx, talk_id)
    if row is None or row[0] != epoch:
        return TalkUpdate(0, epoch, 0, None, superseded=True, gone=row is None)
    if not content:
        return write_answer(tx, talk_id, run_id, row, "", "", Status.WITHDRAWN, None)
    return write_answer(tx, talk_id, run_id, row, content, notes, Status.COMPLETE, None)


def lock(tx: Tx, talk_id: str) -> Row | None:
    return tx.one(
        f"SELECT epoch, last_seq, answer_seq, roost_now() FROM talks WHERE talk_id = :talk{tx.for_update}",
        {"talk": talk_id},
    )


def write_answer(
    tx: Tx,
    talk_id: str,
    run_id: str,
    row: Row,
    content: str,
    notes: str,
    status: Status,
    error: str | None,
    *,
    done: int = 0,
    state: str | None = None,
    supersede: bool = False,
    superseded: bool = False,
    again: bool = False,
) -> TalkUpdate:
    """Close the open message, or add one if none was opened and there is text.

    An interrupted run adds none: no reader could see its text. An open message without text is withdrawn;
    thoughts and tool calls stay, unless the run is run `again`.
    """
    _, last_seq, answer_seq, now = row
    if status is Status.INTERRUPTED and not content and (again or not side_channels.is_telling(notes)):
        status, notes = Status.WITHDRAWN, ""
    adds = not answer_seq and bool(content or error or notes) and status in (Status.COMPLETE, Status.FAILED)
    rows = tx.write(
        "UPDATE talks SET revision = revision + 1, last_seq = last_seq + :adds, epoch = epoch + :supersede,"
        " waiting = waiting - :done, answer_seq = 0, state = COALESCE(:state, state)"
        " WHERE talk_id = :talk RETURNING revision, epoch, waiting",
        {
            "talk": talk_id,
            "adds": int(adds),
            "supersede": int(supersede),
            "done": done,
            "state": state,
        },
    )
    revision, epoch, waiting = rows[0]
    message: Message | None = None
    if answer_seq:
        message = _end(tx, talk_id, run_id, answer_seq, content, notes, status, error, revision)
    elif adds:
        message = Message(
            last_seq + 1, Sender.AGENT, content, status, at(now), error, run_id, side_channels.unpack(notes)
        )
        insert(tx, talk_id, message, revision, now, notes=notes)
    return TalkUpdate(revision, epoch, waiting, message, superseded)


def close_lost(tx: Tx, talk_id: str, seq: int, revision: int, now: float) -> Message | None:
    """Close the message of a lost run from its checkpoints."""
    row = tx.one(
        "SELECT run_id, created, content, notes FROM messages WHERE talk_id = :talk AND seq = :seq",
        {"talk": talk_id, "seq": seq},
    )
    if row is None or row[0] is None:
        return None
    run_id, created, first_text, first_notes = row
    runs.record_lost(tx, run_id, talk_id, seq, created, now)
    more_text, more_notes = saved(tx, talk_id, seq)
    text = first_text + more_text
    if not text:  # only thoughts, and it runs again
        return _end(tx, talk_id, run_id, seq, "", "", Status.WITHDRAWN, None, revision)
    return _end(tx, talk_id, run_id, seq, text, first_notes + more_notes, Status.INTERRUPTED, None, revision)


def message_at(tx: Tx, talk_id: str, seq: int) -> Message | None:
    ids = {"talk": talk_id, "seq": seq}
    row = tx.one(f"SELECT {MESSAGE} FROM messages m WHERE m.talk_id = :talk AND m.seq = :seq", ids)
    return None if row is None else message_of(row)


def _end(
    tx: Tx,
    talk_id: str,
    run_id: str,
    seq: int,
    content: str,
    notes: str,
    status: Status,
    error: str | None,
    revision: int,
) -> Message | None:
    """Close a message if it belongs to this run and is still open."""
    rows = tx.write(
        "UPDATE messages AS m SET content = :content, notes = :notes, status = :status, error = :error,"
        " revision = :revision"
        " WHERE m.talk_id = :talk AND m.seq = :seq AND m.run_id = :run AND m.status = 'streaming'"
        f" RETURNING {', '.join(COLUMNS)}",
        {
            "talk": talk_id,
            "seq": seq,
            "run": run_id,
            "content": content,
            "notes": notes,
            "status": status,
            "error": error,
            "revision": revision,
        },
    )
    tx.write("DELETE FROM parts WHERE talk_id = :talk AND seq = :seq", {"talk": talk_id, "seq": seq})
    return message_of(rows[0]) if rows else None
