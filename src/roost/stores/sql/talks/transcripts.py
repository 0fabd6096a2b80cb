"""Transcripts of talks: read in parts, and added as new talks."""

from __future__ import annotations

from itertools import accumulate, takewhile

from roost.core.talks import side_channels
from roost.core.talks.messages import Message, Status
from roost.core.talks.talk import Talk
from roost.core.talks.transcripts import Transcript
from roost.ports import Tx
from roost.stores.sql.talks import messages, talks

MESSAGES = 500
"""Messages in a part."""
CHARS = 2_000_000
"""Characters of messages and notes in a part; a single message may have more."""


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


def _fitting(tx: Tx, user_id: str, talk_id: str, after: int) -> list[Message]:
    sizes = tx.read(
        "SELECT length(content) + length(notes) FROM messages WHERE talk_id = :talk AND seq > :after ORDER BY seq"
        f" LIMIT {MESSAGES}",
        {"talk": talk_id, "after": after},
    )
    fitting = len(list(takewhile(lambda size: size <= CHARS, accumulate(row[0] for row in sizes))))
    return messages.changed(tx, user_id, talk_id, 0, after, max(1, fitting))


def add(tx: Tx, user_id: str, talk_id: str, profile: str, agent: str, options: str, t: Transcript, most: int) -> None:
    """Add the transcript as a talk of the user. Raise LimitReached if the user has `most` talks already."""
    talks.create(tx, talk_id, user_id, profile, t.busy, t.title, options, most, agent)
    for m in t.messages:
        messages.insert(tx, talk_id, m, m.seq, m.created.timestamp(), notes=side_channels.pack(m.notes))
    tx.write(
        "UPDATE talks SET last_seq = :last, revision = :last, created = :created WHERE talk_id = :talk",
        {"talk": talk_id, "last": len(t.messages), "created": t.created.timestamp()},
    )
