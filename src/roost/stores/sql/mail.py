"""Mail: send, read, archive, count.

A mailbox is `user:ann` or, for an agent, `agent:ann/d`. A mail belongs to the owners of both its sender's and its
recipient's mailbox. Mail of other users is `NotFound`, like mail that does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from roost.core.agents.agent import AgentConfig
from roost.core.envelopes.effects import SendMail
from roost.core.envelopes.envelope import Envelope
from roost.core.envelopes.mail import Mail, MailStatus
from roost.core.talks.messages import at
from roost.core.values.priority import Priority, rank
from roost.errors import Forbidden, NotFound, StaleCursor
from roost.ports import Row, Tx
from roost.stores import bulk, locking
from roost.stores.sql.sending.effects import post, same_mail
from roost.stores.sql.sending.row_locks import by_effect
from roost.stores.sql.tables.parked import PARKED
from roost.stores.sql.tables.timers import arm

_MAIL = (
    "mail_id, thread_id, sender, recipient, subject, body, priority, status, created, reply_to, expires, read_at,"
    " processed"
)
_OWNED = (
    "(mail.{end} = :me OR EXISTS (SELECT 1 FROM agents a"
    " WHERE a.address = substr(mail.{end}, 7) AND a.user_id = :user AND mail.{end} = 'agent:' || a.address))"
)
_RECEIVED = _OWNED.format(end="recipient")
_VISIBLE = f"({_RECEIVED} OR {_OWNED.format(end='sender')})"
_LEVEL = "CASE priority " + "".join(f"WHEN '{one}' THEN {-one.level} " for one in Priority) + "END"
"""Expression of the index `mail_by_urgency`; PostgreSQL and SQLite find an index only by the same expression."""
_URGENCY = f"{_LEVEL}, rank, mail_id"
"""Order by priority, then by age."""
_UNEXPIRED = "(expires IS NULL OR expires > :now)"


@locking.locks(lambda tx, mail_id, address, *_: (locking.agent(address),))
def begin(tx: Tx, mail_id: str, address: str, epoch: int, now: float) -> Mail | None:
    """Mark a mail as read for the agent about to work on it; return None if it is gone.

    The epoch proves that the agent was not taken over; otherwise the mail is unchanged.
    """
    ids = {"id": mail_id, "address": address, "epoch": epoch, "now": now}
    rows = tx.write(
        "UPDATE mail SET read_at = COALESCE(read_at, :now),"
        " status = CASE WHEN status = 'unread' THEN 'read' ELSE status END WHERE mail_id = :id"
        f" AND EXISTS (SELECT 1 FROM agents a WHERE a.address = :address AND a.epoch = :epoch{tx.for_update})"
        f" RETURNING {_MAIL}",
        ids,
    )
    row = rows[0] if rows else tx.one(f"SELECT {_MAIL} FROM mail WHERE mail_id = :id", ids)
    return mail_of(row) if row else None


def check_owner(tx: Tx, user_id: str, box: str) -> None:
    """Raise NotFound if this is not a mailbox of the user."""
    if box == f"user:{user_id}":
        return
    kind, _, address = box.partition(":")
    ids = {"address": address, "user": user_id}
    if kind != "agent" or not tx.one("SELECT 1 FROM agents WHERE address = :address AND user_id = :user", ids):
        raise NotFound(f"there is no mailbox {box!r:.200}: it was deleted, or it never existed")


by_key = same_mail


@locking.locks(by_effect)
def send(tx: Tx, mail: SendMail) -> tuple[str, tuple[Envelope, ...]]:
    """Send a mail; return its id and the envelopes put into inboxes. A key used before returns the id of that mail.

    Raise Conflict if that mail differs, NotFound if the recipient does not exist.
    """
    existing = mail.key and by_key(tx, mail.sender, mail.key, mail.recipient, mail.subject, mail.body)
    return (existing, ()) if existing else (mail.mail_id, post(tx, mail))


def add_imported(tx: Tx, mail: Mail, other_id: str) -> bool:
    """Add a mail to the mailbox of a person as it is, without an envelope, an event or an arrival.

    Return False if the mailbox has it already. It has `other_id` if its id belongs to mail of another mailbox.
    """
    ids = {"id": mail.mail_id, "other": other_id}
    taken = tx.read("SELECT recipient FROM mail WHERE mail_id IN (:id, :other)", ids)
    if any(row[0] == mail.recipient for row in taken):
        return False
    tx.write(
        f"INSERT INTO mail ({_MAIL}, rank) VALUES (:id, :thread, :sender, :recipient, :subject, :body, :priority,"
        " :status, :created, :reply_to, :expires, :read_at, NULL, :rank) ON CONFLICT DO NOTHING",
        {
            "id": other_id if taken else mail.mail_id,
            "thread": mail.thread_id,
            "sender": mail.sender,
            "recipient": mail.recipient,
            "subject": mail.subject,
            "body": mail.body,
            "priority": mail.priority,
            "status": mail.status,
            "created": mail.created.timestamp(),
            "reply_to": mail.reply_to,
            "expires": mail.expires and mail.expires.timestamp(),
            "read_at": mail.read_at and mail.read_at.timestamp(),
            "rank": rank(mail.created.timestamp(), mail.priority),
        },
    )
    return True


def get(tx: Tx, user_id: str, mail_id: str) -> Mail:
    row = tx.one(f"SELECT {_MAIL} FROM mail WHERE mail_id = :id AND {_VISIBLE}", _ids(user_id, mail_id))
    if row is None:
        raise NotFound(f"there is no mail {mail_id!r:.80}: it was deleted, or it never existed")
    return mail_of(row)


def listed(
    tx: Tx,
    user_id: str,
    box: str,
    status: MailStatus | None,
    archived: bool,
    newest: bool,
    limit: int,
    before: str | None,
    now: float,
) -> list[Mail]:
    """Return a mailbox by priority, urgent mail first; with `newest` the newest first.

    `before`: start after that mail; with `newest`, it may be deleted. Without a `status`, archived mail is included
    only if `archived`. Expired mail is omitted.
    """
    check_owner(tx, user_id, box)
    where = f" AND status = '{status}'" if status else "" if archived else " AND status <> 'archived'"
    ids = {"box": box, "now": now, "before": before, "limit": limit}
    if before is None or newest:
        past = "" if before is None else " AND mail_id < :before"
        return _page(tx, where + past, "mail_id DESC" if newest else _URGENCY, ids)
    get(tx, user_id, before)
    last = tx.one(f"SELECT {_LEVEL}, rank FROM mail WHERE mail_id = :before", ids)
    ids |= {"level": last and last[0], "rank": last and last[1]}
    found = _page(tx, f"{where} AND {_LEVEL} = :level AND (rank, mail_id) > (:rank, :before)", "rank, mail_id", ids)
    if len(found) < limit:
        ids["limit"] = limit - len(found)
        found += _page(tx, f"{where} AND {_LEVEL} > :level", _URGENCY, ids)
    return found


def _page(tx: Tx, where: str, order: str, ids: Mapping[str, Any]) -> list[Mail]:
    rows = tx.read(
        f"SELECT {_MAIL} FROM mail WHERE recipient = :box AND {_UNEXPIRED}{where} ORDER BY {order} LIMIT :limit", ids
    )
    return [mail_of(row) for row in rows]


def sent(tx: Tx, person: str, limit: int, before: str) -> list[Mail]:
    """Return mail from a person, newest first, before `before`, archived and expired mail too."""
    rows = tx.read(
        f"SELECT {_MAIL} FROM mail WHERE sender = :person AND sender > 'user:' AND sender < 'user;'"  # its index
        " AND mail_id < :before ORDER BY mail_id DESC LIMIT :limit",
        {"person": person, "before": before, "limit": limit},
    )
    return [mail_of(row) for row in rows]


def arrivals(tx: Tx, box: str, after: int, newest: bool, limit: int) -> tuple[list[tuple[int, Mail]], bool]:
    """Return numbered mail to a person in the order of the numbers, and whether some has no number yet.

    It begins after a number; with `newest` it has the newest instead. Raise StaleCursor if there is no such number.
    """
    rows = tx.read(
        f"SELECT {_MAIL}, arrival FROM mail WHERE recipient = :box AND arrival > :after"
        f" ORDER BY arrival {'DESC' if newest else 'ASC'} LIMIT :limit",
        {"box": box, "after": after, "limit": limit},
    )
    if not rows and after:
        row = tx.one("SELECT arrivals FROM mailboxes WHERE recipient = :box", {"box": box})
        if row is None or row[0] < after:
            raise StaleCursor("this cursor is newer than all mail: start again without one")
    unnumbered = tx.one("SELECT 1 FROM mail WHERE recipient = :box AND arrival = 0 LIMIT 1", {"box": box})
    found = [(row[-1], mail_of(row[:-1])) for row in rows]
    return found[::-1] if newest else found, unnumbered is not None


def number_arrivals(tx: Tx, box: str) -> None:
    """Give numbers to committed mail that has none. The row of the mailbox is locked until the commit."""
    rows = tx.write(
        "INSERT INTO mailboxes (recipient, arrivals) VALUES (:box, 0)"
        " ON CONFLICT (recipient) DO UPDATE SET arrivals = mailboxes.arrivals RETURNING arrivals",
        {"box": box},
    )
    unnumbered = tx.read(
        "SELECT mail_id FROM mail WHERE recipient = :box AND arrival = 0 ORDER BY created, mail_id", {"box": box}
    )
    bulk.with_batch(
        tx,
        "UPDATE mail SET arrival = batch.arrival FROM batch WHERE mail.mail_id = batch.mail_id",
        {"mail_id": "TEXT", "arrival": "BIGINT"},
        [(row[0], number) for number, row in enumerate(unnumbered, rows[0][0] + 1)],
    )
    newest = {"box": box, "newest": rows[0][0] + len(unnumbered)}
    tx.write("UPDATE mailboxes SET arrivals = :newest WHERE recipient = :box", newest)


def unread(tx: Tx, user_id: str, box: str, now: float) -> int:
    check_owner(tx, user_id, box)
    count = "SELECT count(*) FROM mail WHERE recipient = :box AND status = 'unread' AND expires"
    row = tx.one(f"SELECT ({count} IS NULL) + ({count} > :now)", {"box": box, "now": now})
    return row[0] if row else 0


def thread(tx: Tx, user_id: str, thread_id: str, limit: int, before: str) -> list[Mail]:
    """Return the newest mails of a thread before `before`, in order, with expired and archived mail."""
    ids = {**_ids(user_id, thread_id), "limit": limit, "before": before}
    of_thread = f"FROM mail WHERE thread_id = :id AND {_VISIBLE}"
    rows = tx.read(f"SELECT {_MAIL} {of_thread} AND mail_id < :before ORDER BY mail_id DESC LIMIT :limit", ids)
    if not rows and tx.one(f"SELECT 1 {of_thread} LIMIT 1", ids) is None:
        raise NotFound(f"there is no thread {thread_id!r:.80}: it was deleted, or it never existed")
    return [mail_of(row) for row in reversed(rows)]


def read(tx: Tx, user_id: str, mail_id: str, now: float) -> Mail:
    """Mark an unread mail as read if the user owns the recipient's mailbox; otherwise leave it unchanged."""
    rows = tx.write(
        "UPDATE mail SET status = 'read', read_at = COALESCE(read_at, :now)"
        f" WHERE mail_id = :id AND status = 'unread' AND {_RECEIVED} RETURNING {_MAIL}",
        {**_ids(user_id, mail_id), "now": now},
    )
    return mail_of(rows[0]) if rows else get(tx, user_id, mail_id)


def archive(tx: Tx, user_id: str, mail_id: str) -> Mail:
    """Archive a mail. Raise Forbidden if the user only sent it."""
    rows = tx.write(
        f"UPDATE mail SET status = 'archived' WHERE mail_id = :id AND {_RECEIVED} RETURNING {_MAIL}",
        _ids(user_id, mail_id),
    )
    if not rows:
        found = get(tx, user_id, mail_id)
        raise Forbidden(
            f"the mail {mail_id!r:.80} is in the mailbox of {found.recipient!r}: only its owner may archive it"
        )
    return mail_of(rows[0])


def delete(tx: Tx, user_id: str, mail_id: str) -> None:
    """Delete a mail from the user's own mailbox. Raise Forbidden if it is in another one."""
    ids = _ids(user_id, mail_id)
    if not tx.write("DELETE FROM mail WHERE mail_id = :id AND recipient = :me RETURNING mail_id", ids):
        found = get(tx, user_id, mail_id)
        raise Forbidden(f"the mail {mail_id!r:.80} is in the mailbox of {found.recipient!r}: archive it instead")


def check(tx: Tx, addresses: Sequence[str], now: float) -> None:
    """Make all mail due that waits for these agents' next check."""
    bulk.write(
        tx,
        "UPDATE inbox SET due = ? WHERE kind = 'mail' AND attempts = 0 AND due > 0 AND due > ?"
        f" AND NOT {PARKED} AND address <> '' AND address IN",
        addresses,
        first=[now, now],
    )


def recheck(tx: Tx, address: str, config: AgentConfig, now: float) -> None:
    """Make waiting mail due as the agent's new configuration says, and no later than before."""
    waking = ", ".join(f"'{level}'" for level in Priority if level.level >= config.wake_on_priority.level)
    wanted = f"CASE WHEN priority IN ({waking}) THEN :now ELSE :soon END"
    sooner = tx.write(
        f"UPDATE inbox SET due = {wanted} WHERE kind = 'mail' AND attempts = 0 AND due > {wanted} AND NOT {PARKED}"
        " AND address <> '' AND address = :address RETURNING due",
        {"address": address, "now": now, "soon": now + config.check_mail_interval},
    )
    if sooner:
        arm(tx, address, "mail", min(row[0] for row in sooner), earlier=True)


def mail_of(row: Row) -> Mail:
    (
        mail_id,
        thread_id,
        sender,
        recipient,
        subject,
        body,
        priority,
        status,
        created,
        reply_to,
        expires,
        read_at,
        processed,
    ) = row
    return Mail(
        mail_id,
        thread_id,
        sender,
        recipient,
        subject,
        body,
        Priority(priority),
        MailStatus(status),
        at(created),
        reply_to,
        expires and at(expires),
        read_at and at(read_at),
        processed and at(processed),
    )


def _ids(user_id: str, id: str) -> dict[str, str]:
    return {"id": id, "user": user_id, "me": f"user:{user_id}"}
