"""Transcripts of talks: read in parts, and added as new talks."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import accumulate, takewhile

from roost.core.talks import side_channels
from roost.core.talks.attachments import pieces as pieces_of
from roost.core.talks.messages import Message, Status
from roost.core.talks.talk import Talk
from roost.core.talks.transcripts import Transcript
from roost.ports import Tx
from roost.stores.sql.tables import attachments
from roost.stores.sql.talks import messages, talks

MESSAGES = 500
"""Messages in a part."""
CHARS = 2_000_000
"""Characters of messages and notes in a part; a single message may have more."""


_FILES = """CASE WHEN attachments = '' THEN 0 ELSE (SELECT SUM(a.size) FROM message_attachments r
    JOIN attachments a ON a.attachment_id = r.attachment_id
    WHERE r.talk_id = messages.talk_id AND r.seq = messages.seq) END"""
"""Bytes of the files of a message."""


def read_part(tx: Tx, user_id: str, talk_id: str, after: int) -> tuple[Talk, list[Message], bool]:
    """Return the talk, the messages after a number as far as they fit into a part, and whether they are the last.

    Withdrawn messages are left out. There is at least one message, unless no more follow.
    """
    talk = talks.get(tx, user_id, talk_id)
    while True:
        found = _fitting(tx, user_id, talk_id, after)
        kept = [message for message in found if message.status is not Status.WITHDRAWN]
        is_last = not found or found[-1].seq >= talk.messages
        if kept or is_last:
            return talk, kept, is_last
        after = found[-1].seq


def files(tx: Tx, read: Iterable[Message]) -> dict[str, bytes]:
    """Return the bytes of all attachments of these messages, by id."""
    ids = (one.attachment_id for message in read for one in message.attachments)
    return {one: attachments.read(tx, one) for one in ids}


def _fitting(tx: Tx, user_id: str, talk_id: str, after: int) -> list[Message]:
    sizes = tx.read(
        f"SELECT length(content) + length(notes) + {_FILES} FROM messages"
        f" WHERE talk_id = :talk AND seq > :after ORDER BY seq LIMIT {MESSAGES}",
        {"talk": talk_id, "after": after},
    )
    fitting = len(list(takewhile(lambda size: size <= CHARS, accumulate(row[0] for row in sizes))))
    return messages.changed(tx, user_id, talk_id, 0, after, max(1, fitting))


def add(
    tx: Tx,
    user_id: str,
    talk_id: str,
    profile: str,
    agent: str,
    options: str,
    t: Transcript,
    most: int,
    key: str | None = None,
) -> str:
    """Add the transcript as a talk of the user, and return its id, or that of the talk with this key.

    Raise LimitReached if the user has `most` talks already.
    """
    if key is not None and (known := by_key(tx, user_id, key)) is not None:
        return known
    talks.create(tx, talk_id, user_id, profile, t.busy, t.title, options, most, agent)
    for m in t.messages:
        messages.insert(tx, talk_id, m, m.seq, m.created.timestamp(), notes=side_channels.pack(m.notes))
        for one in m.attachments:
            pieces = list(pieces_of(t.files[one.attachment_id]))
            attachments.save(tx, user_id, one, 0, pieces, True, m.created.timestamp())
        if m.attachments:
            attachments.attach(tx, talk_id, m.seq, m.attachments)
    tx.write(
        "UPDATE talks SET last_seq = :last, revision = :last, created = :created, branch_key = :key"
        " WHERE talk_id = :talk",
        {"talk": talk_id, "last": len(t.messages), "created": t.created.timestamp(), "key": _stored(key)},
    )
    return talk_id


def by_key(tx: Tx, user_id: str, key: str) -> str | None:
    """Return the talk of the user that was added with this key."""
    ids = {"user": user_id, "key": _stored(key)}
    row = tx.one("SELECT talk_id FROM talks WHERE user_id = :user AND branch_key = :key", ids)
    return None if row is None else str(row[0])


def _stored(key: str | None) -> str | None:
    """Return a key as it is stored: branches have keys in the same column."""
    return None if key is None else json.dumps(["import", key])
