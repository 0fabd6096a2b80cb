"""Accounts: their state, invitations, identities. All writes have the same key, so none of them overlap."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from roost.core.accounts.users import Account, Role, SessionState, free_name
from roost.core.talks.messages import at
from roost.errors import Conflict, Forbidden, NotFound
from roost.ports import Tx
from roost.stores.sql.accounts import audit, suspension
from roost.stores.sql.accounts.audit import Action
from roost.stores.sql.accounts.exports import is_known
from roost.stores.sql.tables.disabled import is_disabled

_IDENTITY = "SELECT user_id FROM identities WHERE issuer = :issuer AND subject = :subject"
_COLUMNS = "user_id, role, created, disabled, password IS NOT NULL, epoch"


# --- reading ------------------------------------------------------------------------------------------


def find(tx: Tx, name: str) -> Account | None:
    row = tx.one(f"SELECT {_COLUMNS} FROM accounts WHERE user_id = :user", {"user": name})
    return None if row is None else _account(row)


def get(tx: Tx, name: str) -> Account:
    found = find(tx, name)
    if found is None:
        raise NotFound(f"there is no account {name!r:.80}: `roost users ls` lists them")
    return found


def listed(tx: Tx, limit: int, after: str) -> list[Account]:
    """Return the accounts by name."""
    rows = tx.read(
        f"SELECT {_COLUMNS} FROM accounts WHERE user_id > :after ORDER BY user_id LIMIT :limit",
        {"after": after, "limit": limit},
    )
    return [_account(row) for row in rows]


def credentials(tx: Tx, name: str) -> tuple[Account, str | None] | None:
    """Return an account that is not disabled, and the hash of its password."""
    found = find(tx, name)
    if found is None or found.disabled is not None:
        return None
    row = tx.one("SELECT password FROM accounts WHERE user_id = :user", {"user": name})
    return found, row[0] if row else None


def session(tx: Tx, name: str, session: str = "") -> SessionState | None:
    """Return the state of the sessions of an account; None if it is disabled, or if the one with this digest ended."""
    row = tx.one(
        "SELECT role, epoch FROM accounts WHERE user_id = :user AND disabled IS NULL"
        " AND NOT EXISTS (SELECT 1 FROM ended_sessions WHERE digest = :session)",
        {"user": name, "session": session},
    )
    return None if row is None else SessionState(Role(row[0]), row[1])


def may_act(table: str) -> str:
    """Return the condition that the owner of a row is neither disabled nor being deleted; an account is not needed."""
    return (
        f"NOT {is_disabled(f'{table}.user_id')}"
        f" AND NOT EXISTS (SELECT 1 FROM deletions d WHERE d.user_id = {table}.user_id)"
    )


def exist(tx: Tx) -> bool:
    return tx.one("SELECT 1 FROM accounts LIMIT 1") is not None


def invited(tx: Tx, digest: str, now: float) -> Account:
    """Return the account that a code is for. Raise NotFound if the code is not valid."""
    row = tx.one("SELECT user_id FROM invitations WHERE digest = :digest AND expires > :now", _code(digest, now))
    found = None if row is None else find(tx, row[0])
    if found is None or found.disabled is not None:
        raise NotFound("this invitation was used, was replaced, or has expired: ask an admin for a new one")
    return found


def identified(tx: Tx, issuer: str, subject: str) -> Account | None:
    """Return the account of an identity, if it is not disabled."""
    row = tx.one(_IDENTITY, {"issuer": issuer, "subject": subject})
    found = None if row is None else find(tx, row[0])
    return None if found is None or found.disabled is not None else found


# --- writing ------------------------------------------------------------------------------------------


def add(tx: Tx, name: str, role: Role, digest: str, expires: float, by: Action) -> Account:
    """Create an account with an invitation."""
    if find(tx, name) is not None:
        raise Conflict(f"there is an account {name!r} already: `roost users reset {name}` makes a new invitation")
    _refuse_deleting(tx, name)
    _insert(tx, name, role, by.now)
    _invite(tx, name, digest, expires)
    return _recorded(tx, name, by, f"role {role}")


def disable(tx: Tx, name: str, by: Action) -> Account:
    account = get(tx, name)
    if account.disabled is not None:
        return account
    keep_an_admin(tx, account)
    tx.write(
        "UPDATE accounts SET disabled = :now, epoch = epoch + 1 WHERE user_id = :user", {"now": by.now, "user": name}
    )
    tx.write("DELETE FROM invitations WHERE user_id = :user", {"user": name})
    return _recorded(tx, name, by)


def enable(tx: Tx, name: str, by: Action) -> Account:
    if get(tx, name).disabled is None:
        return get(tx, name)
    _refuse_deleting(tx, name)
    tx.write("UPDATE accounts SET disabled = NULL WHERE user_id = :user", {"user": name})
    suspension.rejoin_meetings(tx, name)
    return _recorded(tx, name, by)


def reset(tx: Tx, name: str, digest: str, expires: float, by: Action) -> Account:
    """Remove the password, end all sessions, and replace the invitation."""
    if get(tx, name).disabled is not None:
        raise Conflict(f"the account {name!r} is disabled: enable it first")
    tx.write("UPDATE accounts SET password = NULL, epoch = epoch + 1 WHERE user_id = :user", {"user": name})
    _invite(tx, name, digest, expires)
    return _recorded(tx, name, by)


def set_role(tx: Tx, name: str, role: Role, by: Action) -> Account:
    account = get(tx, name)
    if account.role is role:
        return account
    if role is not Role.ADMIN:
        keep_an_admin(tx, account)
    tx.write("UPDATE accounts SET role = :role WHERE user_id = :user", {"role": role, "user": name})
    return _recorded(tx, name, by, f"role {role}")


def redeem(tx: Tx, digest: str, password: str, by: Action) -> Account:
    """Set the password of the invited user; the code is used up."""
    name = invited(tx, digest, by.now).user_id
    tx.write("DELETE FROM invitations WHERE user_id = :user", {"user": name})
    return _set_password(tx, name, password, by)


def change_password(tx: Tx, name: str, epoch: int, password: str, by: Action) -> Account:
    """Replace the password that was verified in this epoch."""
    state = session(tx, name)
    if state is None or state.epoch != epoch:
        raise Forbidden("you were signed out meanwhile: sign in again")
    return _set_password(tx, name, password, by)


def _set_password(tx: Tx, name: str, password: str, by: Action) -> Account:
    """Set a password; all sessions end."""
    tx.write(
        "UPDATE accounts SET password = :password, epoch = epoch + 1 WHERE user_id = :user",
        {"password": password, "user": name},
    )
    return _recorded(tx, name, by)


def sign_out(tx: Tx, name: str) -> None:
    """End all sessions."""
    tx.write("UPDATE accounts SET epoch = epoch + 1 WHERE user_id = :user", {"user": name})


def identify(tx: Tx, issuer: str, subject: str, suggested: str, reserved: Collection[str], by: Action) -> Account:
    """Return the account of an identity of a provider; create it at the first sign-in.

    A name that anybody's data has is not given again, also if it has no account.
    """
    ids = {"issuer": issuer, "subject": subject}
    row = tx.one(_IDENTITY, ids)
    if row is not None:
        if (account := get(tx, row[0])).disabled is not None:
            raise Forbidden("this account is disabled: ask an admin to enable it")
        return account
    name = _free(tx, suggested, reserved)
    _insert(tx, name, Role.USER, by.now)
    tx.write(
        "INSERT INTO identities (issuer, subject, user_id, created) VALUES (:issuer, :subject, :user, :now)",
        {**ids, "user": name, "now": by.now},
    )
    return _recorded(tx, name, replace(by, actor=name), f"identity of {issuer}")


def keep_an_admin(tx: Tx, account: Account) -> None:
    """Raise Conflict if no other account would be an admin that can sign in."""
    if account.role is not Role.ADMIN or account.disabled is not None:
        return
    others = "SELECT 1 FROM accounts WHERE role = 'admin' AND disabled IS NULL AND user_id <> :user LIMIT 1"
    if tx.one(others, {"user": account.user_id}) is None:
        raise Conflict(f"{account.user_id!r} is the last admin: make another account an admin first")


def _free(tx: Tx, suggested: str, reserved: Collection[str]) -> str:
    taken = set(reserved)
    while is_known(tx, name := free_name(suggested, taken)):
        taken.add(name)
    return name


def _refuse_deleting(tx: Tx, name: str) -> None:
    if tx.one("SELECT 1 FROM deletions WHERE user_id = :user", {"user": name}) is not None:
        raise Conflict(f"the data of {name!r} is being deleted: wait until that is done")


def _insert(tx: Tx, name: str, role: Role, now: float) -> None:
    """Insert an account. Its epoch begins with the time: sessions of a deleted account of this name stay ended."""
    tx.write(
        "INSERT INTO accounts (user_id, role, epoch, created) VALUES (:user, :role, :epoch, :now)",
        {"user": name, "role": role, "epoch": int(now * 1_000), "now": now},
    )


def _invite(tx: Tx, name: str, digest: str, expires: float) -> None:
    tx.write(
        "INSERT INTO invitations (user_id, digest, expires) VALUES (:user, :digest, :expires)"
        " ON CONFLICT (user_id) DO UPDATE SET digest = excluded.digest, expires = excluded.expires",
        {"user": name, "digest": digest, "expires": expires},
    )


def _recorded(tx: Tx, name: str, by: Action, detail: str = "") -> Account:
    """Record an action about an account in the audit list, and return the account."""
    audit.add(tx, by, name, detail)
    return get(tx, name)


def _code(digest: str, now: float) -> dict[str, str | float]:
    return {"digest": digest, "now": now}


def _account(row: Sequence[Any]) -> Account:
    user_id, role, created, disabled, has_password, epoch = row
    ended = None if disabled is None else at(disabled)
    return Account(user_id, Role(role), at(created), ended, bool(has_password), epoch)
