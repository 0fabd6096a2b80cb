"""Mail: read, answered, archived, counted."""

from __future__ import annotations

from roost.core.mail import Mail, MailStatus
from roost.core.messages import at
from roost.core.priority import Priority
from roost.ports import Row, Tx

_MAIL = (
    "mail_id, thread_id, sender, recipient, subject, body, priority, status, created, reply_to, expires, read_at,"
    " processed"
)


def letter(tx: Tx, mail_id: str) -> Mail | None:
    row = tx.one(f"SELECT {_MAIL} FROM mail WHERE mail_id = :id", {"id": mail_id})
    return mail_of(row) if row else None


def mail_of(row: Row) -> Mail:
    (mail_id, thread_id, sender, recipient, subject, body, priority, status, created, reply_to, expires, read_at,
     processed) = row  # fmt: skip
    return Mail(
        mail_id, thread_id, sender, recipient, subject, body, Priority(priority), MailStatus(status), at(created),
        reply_to, expires and at(expires), read_at and at(read_at), processed and at(processed),
    )  # fmt: skip
