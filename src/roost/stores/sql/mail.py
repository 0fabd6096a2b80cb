"""Mail: send, read, archive, count.

A mailbox is `user:ann` or, for an agent, `agent:ann/d`. A mail belongs to the owners of both its sender's and its
recipient's mailbox. Mail of other users is `NotFound`, like mail that does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence

from roost.core.agents.agent import AgentConfig
from roost.core.envelopes.effects import SendMail
from roost.core.envelopes.envelope import Envelope
from roost.core.envelopes.mail import Mail, MailStatus
from roost.core.talks.messages import at
from roost.core.values.priority import Priority
from roost.errors import Forbidden, NotFound, StaleCursor
from roost.ports import Row, Tx
from roost.stores import bulk
from roost.stores.sql.sending.effects import post, same_mail
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
_URGENCY = "CASE priority " + "".join(f"WHEN '{one}' THEN {-one.level} " for one in Priority) + "END, rank, mail_id"
"""Order by priority, then by age."""
_UNEXPIRED = "(expires IS NULL OR expires > :now)"


def begin(tx: Tx, mail_id: str, address: str, epoch: int, now: float) -> Mail | None:
    """Mark a mail as read for the agent about to work on it; return None if it is gone.

    The epoch proves that the agent was not taken over; otherwise the mail is unchanged.
    """
    ids = {"id": mail_id, "address": address, "epoch": epoch, "now": now}
    rows = tx.write(
        "UPDATE mail SET read_at = COALESCE(read_at, :now),"
        " status = CASE WHEN status = 'unread' THEN 'read' ELSE status END WHERE mail_id = :id"
        f" AND EXISTS (SELECT 1 FROM agents a WHERE a.address = :address AND a.epoch = :epoch) RETURNING {_MAIL}",
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


def send(tx: Tx, mail: SendMail) -> tuple[str, tuple[Envelope, ...]]:
    """Send a mail; return its id and the envelopes put into inboxes. A key used before returns the id of that mail.

    Raise Conflict if that mail differs, NotFound if the recipient does not exist.
    """
    existing = mail.key and by_key(tx, mail.sender, mail.key, mail.recipient, mail.subject, mail.body)
    return (existing, ()) if existing else (mail.mail_id, post(tx, mail))


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

    `before`: start after that mail. Without a `status`, archived mail is included only if `archived`. Expired mail is
    omitted.
    """
    check_owner(tx, user_id, box)
    where = f" AND status = '{status}'" if status else "" if archived else " AND status <> 'archived'"
    if before is not None:
        get(tx, user_id, before)
        past = (
            "mail_id < :before" if newest else f"({_URGENCY}) > (SELECT {_URGENCY} FROM mail WHERE mail_id = :before)"
        )
        where += f" AND {past}"
    order = "mail_id DESC" if newest else _URGENCY
    rows = tx.read(
        f"SELECT {_MAIL} FROM mail WHERE recipient = :box AND {_UNEXPIRED}{where} ORDER BY {order} LIMIT :limit",
        {"box": box, "now": now, "before": before, "limit": limit},
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
    row = tx.one(
        f"SELECT count(*) FROM mail WHERE recipient = :box AND status = 'unread' AND {_UNEXPIRED}",
        {"box": box, "now": now},
    )
    return row[0] if row else 0


def thread(tx: Tx, user_id: str, thread_id: str) -> list[Mail]:
    """Return a whole thread in order, with expired and archived mail."""
    rows = tx.read(
        f"SELECT {_MAIL} FROM mail WHERE thread_id = :id AND {_VISIBLE} ORDER BY mail_id", _ids(user_id, thread_id)
    )
    if not rows:
        raise NotFound(f"there is no thread {thread_id!r:.80}: it was deleted, or it never existed")
    return [mail_of(row) for row in rows]


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
