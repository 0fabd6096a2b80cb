"""Attachments: files in pieces, and the messages that have them. A file is deleted with the last of its messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from roost.core.talks.attachments import Attachment, pack
from roost.errors import Conflict, NotFound
from roost.ports import Tx
from roost.stores import bulk

_ATTACHMENT = "attachment_id, name, media_type, size, sha256"
_NEW = bulk.columns("attachment_id, user_id, name, media_type, size, sha256, complete, created")
_PIECE = bulk.columns("attachment_id, piece, data")
_REFERENCE = bulk.columns("talk_id, seq, attachment_id")
UNUSED = "NOT EXISTS (SELECT 1 FROM message_attachments m WHERE m.attachment_id = attachments.attachment_id)"
"""Condition: no message has this file."""


def save(
    tx: Tx, user_id: str, file: Attachment, first: int, pieces: Sequence[bytes], is_last: bool, now: float
) -> Attachment:
    """Store pieces of a file, from number `first` on; with the last ones it is complete. The pieces come in order."""
    if first == 0:
        row = (file.attachment_id, user_id, file.name, file.media_type, file.size, file.sha256, int(is_last), now)
        tx.later("attachments", _NEW, row)
    for number, data in enumerate(pieces, start=first):
        tx.later("attachment_pieces", _PIECE, (file.attachment_id, number, data))
    if first and is_last:
        tx.write("UPDATE attachments SET complete = 1 WHERE attachment_id = :id", {"id": file.attachment_id})
    return file


def get(tx: Tx, user_id: str, attachment_id: str) -> Attachment:
    """Return a file of this user. Raise NotFound if there is none, or it is not complete."""
    row = tx.one(
        f"SELECT {_ATTACHMENT} FROM attachments WHERE attachment_id = :id AND user_id = :user AND complete = 1",
        {"id": attachment_id, "user": user_id},
    )
    if row is None:
        raise _unknown(attachment_id)
    return Attachment(*row)


def read_piece(tx: Tx, attachment_id: str, piece: int) -> bytes:
    """Return a piece; empty after the last one."""
    row = tx.one(
        "SELECT data FROM attachment_pieces WHERE attachment_id = :id AND piece = :piece",
        {"id": attachment_id, "piece": piece},
    )
    return b"" if row is None else bytes(row[0])


def read(tx: Tx, attachment_id: str) -> bytes:
    """Return all bytes of a file. Raise NotFound if it was deleted."""
    rows = tx.read("SELECT data FROM attachment_pieces WHERE attachment_id = :id ORDER BY piece", {"id": attachment_id})
    if not rows:
        raise _unknown(attachment_id)
    return b"".join(row[0] for row in rows)


def unused(tx: Tx, user_id: str, ids: Sequence[str]) -> list[Attachment]:
    """Return the user's files with these ids, in order, locked. Raise Conflict if a message has one already."""
    rows = bulk.read(
        tx,
        f"SELECT {_ATTACHMENT} FROM attachments WHERE user_id = ? AND complete = 1 AND attachment_id IN",
        ids,
        f" ORDER BY attachment_id{tx.for_update}",
        [user_id],
    )
    found = {row[0]: Attachment(*row) for row in rows}
    for one in ids:
        if one not in found:
            raise _unknown(one)
    used = bulk.read(tx, "SELECT attachment_id FROM message_attachments WHERE attachment_id IN", ids)
    if used:
        raise Conflict(f"the attachment {used[0][0]!r} is in another message already: upload the file again")
    return [found[one] for one in ids]


def attach(tx: Tx, talk_id: str, seq: int, attachments: Sequence[Attachment]) -> None:
    """Add files to a message that was inserted in this transaction."""
    for one in attachments:
        tx.later("message_attachments", _REFERENCE, (talk_id, seq, one.attachment_id))
    tx.write(
        "UPDATE messages SET attachments = :packed WHERE talk_id = :talk AND seq = :seq",
        {"packed": pack(attachments), "talk": talk_id, "seq": seq},
    )


def copy(tx: Tx, source: str, talk_id: str, last: int) -> None:
    """Give a branch the files of the messages up to `last`; the messages themselves are copied already."""
    tx.write(
        "INSERT INTO message_attachments (talk_id, seq, attachment_id)"
        " SELECT CAST(:new AS TEXT), seq, attachment_id FROM message_attachments"
        " WHERE talk_id = :old AND seq <= :last",
        {"old": source, "new": talk_id, "last": last},
    )


def forget(tx: Tx, talk_id: str) -> None:
    """Delete the files of a talk, except those that branches or forks have too."""
    rows = tx.write("DELETE FROM message_attachments WHERE talk_id = :talk RETURNING attachment_id", {"talk": talk_id})
    remove(tx, {row[0] for row in rows})


def remove(tx: Tx, ids: Iterable[str]) -> int:
    """Delete those of these files that no message has; return their number."""
    removed = bulk.write(
        tx,
        "DELETE FROM attachments WHERE attachment_id IN",
        sorted(ids),
        f" AND {UNUSED} RETURNING attachment_id",
    )
    bulk.write(tx, "DELETE FROM attachment_pieces WHERE attachment_id IN", [row[0] for row in removed])
    return len(removed)


def _unknown(attachment_id: str) -> NotFound:
    return NotFound(f"there is no attachment {attachment_id!r}: it was deleted, or never uploaded; upload it again")
