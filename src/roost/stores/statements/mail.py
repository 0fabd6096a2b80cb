"""Mail: sent, read, archived, counted. Every query of a person's carries the owner of the mailbox."""

from __future__ import annotations

from collections.abc import Sequence

from roost.core.agents import AgentConfig
from roost.core.envelopes import Envelope, SendMail
from roost.core.mail import Mail, MailStatus
from roost.core.messages import at
from roost.core.priority import Priority
from roost.errors import Forbidden, NotFound
from roost.ports import Row, Tx
from roost.stores.statements import bulk
from roost.stores.statements.posting import post, same_mail
from roost.stores.statements.resting import RESTS
from roost.stores.statements.sleep import arm

_MAIL = (
    "mail_id, thread_id, sender, recipient, subject, body, priority, status, created, reply_to, expires, read_at,"
    " processed"
)
_OURS = (
    "(mail.{end} = :me OR EXISTS (SELECT 1 FROM agents a"
    " WHERE a.address = substr(mail.{end}, 7) AND a.user_id = :user AND mail.{end} = 'agent:' || a.address))"
)
_GOT = _OURS.format(end="recipient")
_EITHER = f"({_GOT} OR {_OURS.format(end='sender')})"
_URGENCY = "CASE priority " + "".join(f"WHEN '{one}' THEN {-one.level} " for one in Priority) + "END, rank, mail_id"
"""By priority; within one, its rank is its age."""
_FRESH = "(expires IS NULL OR expires > :now)"


def begin(tx: Tx, mail_id: str, address: str, epoch: int, now: float) -> Mail | None:
    ids = {"id": mail_id, "address": address, "epoch": epoch, "now": now}
    rows = tx.write(
        "UPDATE mail SET read_at = COALESCE(read_at, :now),"
        " status = CASE WHEN status = 'unread' THEN 'read' ELSE status END WHERE mail_id = :id"
        f" AND EXISTS (SELECT 1 FROM agents a WHERE a.address = :address AND a.epoch = :epoch) RETURNING {_MAIL}",
        ids,
    )
    row = rows[0] if rows else tx.one(f"SELECT {_MAIL} FROM mail WHERE mail_id = :id", ids)
    return mail_of(row) if row else None


def owned(tx: Tx, user_id: str, box: str) -> None:
    if box == f"user:{user_id}":
        return
    kind, _, address = box.partition(":")
    ids = {"address": address, "user": user_id}
    if kind != "agent" or not tx.one("SELECT 1 FROM agents WHERE address = :address AND user_id = :user", ids):
        raise NotFound(f"there is no mailbox {box!r:.200}: it was deleted, or it never existed")


by_key = same_mail


def send(tx: Tx, mail: SendMail) -> tuple[str, tuple[Envelope, ...]]:
    there = mail.key and by_key(tx, mail.sender, mail.key, mail.recipient, mail.subject, mail.body)
    return (there, ()) if there else (mail.mail_id, post(tx, mail))


def get(tx: Tx, user_id: str, mail_id: str) -> Mail:
    row = tx.one(f"SELECT {_MAIL} FROM mail WHERE mail_id = :id AND {_EITHER}", _ids(user_id, mail_id))
    if row is None:
        raise NotFound(f"there is no mail {mail_id!r:.80}: it was deleted, or it never existed")
    return mail_of(row)


def listed(
    tx: Tx, user_id: str, box: str, status: MailStatus | None, archived: bool, newest: bool, limit: int,
    before: str | None, now: float,
) -> list[Mail]:  # fmt: skip
    owned(tx, user_id, box)
    where = f" AND status = '{status}'" if status else "" if archived else " AND status <> 'archived'"
    if before is not None:
        get(tx, user_id, before)
        past = (
            "mail_id < :before" if newest else f"({_URGENCY}) > (SELECT {_URGENCY} FROM mail WHERE mail_id = :before)"
        )
        where += f" AND {past}"
    order = "mail_id DESC" if newest else _URGENCY
    rows = tx.read(
        f"SELECT {_MAIL} FROM mail WHERE recipient = :box AND {_FRESH}{where} ORDER BY {order} LIMIT :limit",
        {"box": box, "now": now, "before": before, "limit": limit},
    )
    return [mail_of(row) for row in rows]


def unread(tx: Tx, user_id: str, box: str, now: float) -> int:
    owned(tx, user_id, box)
    row = tx.one(
        f"SELECT count(*) FROM mail WHERE recipient = :box AND status = 'unread' AND {_FRESH}",
        {"box": box, "now": now},
    )
    return row[0] if row else 0


def thread(tx: Tx, user_id: str, thread_id: str) -> list[Mail]:
    rows = tx.read(
        f"SELECT {_MAIL} FROM mail WHERE thread_id = :id AND {_EITHER} ORDER BY mail_id", _ids(user_id, thread_id)
    )
    if not rows:
        raise NotFound(f"there is no thread {thread_id!r:.80}: it was deleted, or it never existed")
    return [mail_of(row) for row in rows]


def read(tx: Tx, user_id: str, mail_id: str, now: float) -> Mail:
    rows = tx.write(
        "UPDATE mail SET status = 'read', read_at = COALESCE(read_at, :now)"
        f" WHERE mail_id = :id AND status = 'unread' AND {_GOT} RETURNING {_MAIL}",
        {**_ids(user_id, mail_id), "now": now},
    )
    return mail_of(rows[0]) if rows else get(tx, user_id, mail_id)


def archive(tx: Tx, user_id: str, mail_id: str) -> Mail:
    rows = tx.write(
        f"UPDATE mail SET status = 'archived' WHERE mail_id = :id AND {_GOT} RETURNING {_MAIL}",
        _ids(user_id, mail_id),
    )
    if not rows:
        there = get(tx, user_id, mail_id)
        raise Forbidden(f"the mail {mail_id!r:.80} is in the mailbox of {there.recipient!r}: only there it is archived")
    return mail_of(rows[0])


def check(tx: Tx, addresses: Sequence[str], now: float) -> None:
    bulk.change(
        tx, "UPDATE inbox SET due = ? WHERE kind = 'mail' AND attempts = 0 AND due > 0 AND due > ?"
        f" AND NOT {RESTS} AND address <> '' AND address IN", addresses, first=[now, now],
    )  # fmt: skip


def recheck(tx: Tx, address: str, config: AgentConfig, now: float) -> None:
    """Mail that waits is looked at as soon as its agent is configured to, and no later than it was to be."""
    waking = ", ".join(f"'{level}'" for level in Priority if level.level >= config.wake_on_priority.level)
    wanted = f"CASE WHEN priority IN ({waking}) THEN :now ELSE :soon END"
    sooner = tx.write(
        f"UPDATE inbox SET due = {wanted} WHERE kind = 'mail' AND attempts = 0 AND due > {wanted} AND NOT {RESTS}"
        " AND address <> '' AND address = :address RETURNING due",
        {"address": address, "now": now, "soon": now + config.check_mail_interval},
    )
    if sooner:
        arm(tx, address, "mail", min(row[0] for row in sooner), earlier=True)


def mail_of(row: Row) -> Mail:
    (mail_id, thread_id, sender, recipient, subject, body, priority, status, created, reply_to, expires, read_at,
     processed) = row  # fmt: skip
    return Mail(
        mail_id, thread_id, sender, recipient, subject, body, Priority(priority), MailStatus(status), at(created),
        reply_to, expires and at(expires), read_at and at(read_at), processed and at(processed),
    )  # fmt: skip


def _ids(user_id: str, id: str) -> dict[str, str]:
    return {"id": id, "user": user_id, "me": f"user:{user_id}"}
