"""Deletion of a user: what is recorded of its course, and the rows that are left after agents and talks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from roost.core.accounts.pseudonyms import Renaming
from roost.errors import NotFound
from roost.ports import Tx
from roost.stores import bulk
from roost.stores.sql.accounts import accounts, audit
from roost.stores.sql.accounts.audit import Action
from roost.stores.sql.accounts.belongings import GUEST, KEYS, REMAINING, params
from roost.stores.sql.accounts.exports import is_known
from roost.stores.sql.tables import quotas


@dataclass(frozen=True, slots=True)
class DeletionOrder:
    """A deletion that has begun."""

    user_id: str
    pseudonym: str
    actor: str
    address: str

    @property
    def renaming(self) -> Renaming:
        return Renaming(self.user_id, self.pseudonym)


def begin(tx: Tx, user_id: str, pseudonym: str, by: Action) -> DeletionOrder:
    """Record the deletion; from now on the user cannot sign in. One that has begun before is continued."""
    if (found := find(tx, user_id)) is not None:
        return found
    account = accounts.find(tx, user_id)
    if account is None and not is_known(tx, user_id):
        raise NotFound(f"there is no user {user_id!r:.80}: there is neither an account nor data of this name")
    if account is not None:
        accounts.keep_an_admin(tx, account)
    order = DeletionOrder(user_id, pseudonym, by.actor, by.address)
    ids = {"user": user_id, "now": by.now}
    tx.write(
        "INSERT INTO deletions (user_id, pseudonym, actor, address, started)"
        " VALUES (:user, :pseudonym, :actor, :address, :now)",
        {**ids, "pseudonym": pseudonym, "actor": by.actor, "address": by.address},
    )
    tx.write("UPDATE accounts SET disabled = COALESCE(disabled, :now), epoch = epoch + 1 WHERE user_id = :user", ids)
    return order


def find(tx: Tx, user_id: str) -> DeletionOrder | None:
    row = tx.one("SELECT user_id, pseudonym, actor, address FROM deletions WHERE user_id = :user", {"user": user_id})
    return None if row is None else DeletionOrder(*row)


def unfinished(tx: Tx) -> list[DeletionOrder]:
    rows = tx.read("SELECT user_id, pseudonym, actor, address FROM deletions ORDER BY user_id")
    return [DeletionOrder(*row) for row in rows]


def webhook_ids(tx: Tx, user_id: str, limit: int) -> list[str]:
    return _texts(tx, "SELECT webhook_id FROM webhooks WHERE user_id = :user LIMIT :limit", user_id, limit)


def agent_ids(tx: Tx, user_id: str, limit: int) -> list[str]:
    return _texts(tx, "SELECT agent_id FROM agents WHERE user_id = :user LIMIT :limit", user_id, limit)


def talk_ids(tx: Tx, user_id: str, limit: int) -> list[str]:
    return _texts(tx, "SELECT talk_id FROM talks WHERE user_id = :user LIMIT :limit", user_id, limit)


def open_tasks(tx: Tx, user_id: str, limit: int) -> list[str]:
    """Return tasks of the user that agents of others have not finished."""
    return _texts(tx, f"SELECT task_id FROM tasks WHERE {GUEST} AND ended IS NULL LIMIT :limit", user_id, limit)


def _texts(tx: Tx, query: str, user_id: str, limit: int) -> list[str]:
    return [row[0] for row in tx.read(query, {**params(user_id), "limit": limit})]


def remove_files(tx: Tx, user_id: str, limit: int) -> int:
    """Delete files of the user; return their number."""
    ids = _texts(tx, "SELECT attachment_id FROM attachments WHERE user_id = :user LIMIT :limit", user_id, limit)
    for table in ("message_attachments", "attachment_pieces", "attachments"):
        bulk.write(tx, f"DELETE FROM {table} WHERE attachment_id IN", ids)
    return len(ids)


def remove_rows(tx: Tx, user_id: str, limit: int) -> int:
    """Delete up to `limit` rows of each table, beside agents, talks and files; return their number."""
    count = 0
    for table, where in REMAINING.items():
        key = f"({', '.join(KEYS[table])})"
        some = f"SELECT {', '.join(KEYS[table])} FROM {table} WHERE {where} LIMIT :limit"
        count += len(
            tx.write(f"DELETE FROM {table} WHERE {key} IN ({some}) RETURNING 1", {**params(user_id), "limit": limit})
        )
    return count


def finish(tx: Tx, order: DeletionOrder, by: Action) -> bool:
    """Delete the account and record the deletion under the pseudonym. Return False if more data came meanwhile."""
    ids = params(order.user_id)
    if find(tx, order.user_id) != order:  # finished before: an account of this name is a new one
        return True
    left = {**REMAINING, **dict.fromkeys(("webhooks", "agents", "talks", "attachments"), "user_id = :user")}
    if any(tx.one(f"SELECT 1 FROM {table} WHERE {where} LIMIT 1", ids) for table, where in left.items()):
        return False
    _rename_audit(tx, order)
    quotas.forget(tx, order.user_id)
    for table in ("accounts", "users", "deletions"):
        tx.write(f"DELETE FROM {table} WHERE user_id = :user", ids)
    actor = order.pseudonym if order.actor == order.user_id else order.actor
    audit.add(tx, replace(by, actor=actor, address=order.address), order.pseudonym)
    return True


def _rename_audit(tx: Tx, order: DeletionOrder) -> None:
    """Keep the entries about the user, without name and address."""
    ids = {**params(order.user_id), "new": order.pseudonym}
    tx.write("UPDATE audit SET address = '' WHERE actor = :user", ids)
    tx.write("UPDATE audit SET detail = '' WHERE actor = :user OR target = :user", ids)
    for column in ("actor", "target"):
        tx.write(f"UPDATE audit SET {column} = :new WHERE {column} = :user", ids)
