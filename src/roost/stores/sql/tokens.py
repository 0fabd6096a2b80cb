"""API tokens of users, by id and by the digest of their secret."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from roost.core.accounts.tokens import ApiToken
from roost.core.talks.messages import at
from roost.errors import LimitReached, NotFound
from roost.ports import Tx
from roost.stores.sql.accounts import accounts, audit
from roost.stores.sql.accounts.audit import Action

_COLUMNS = "token_id, user_id, name, scopes, created, expires"


def create(
    tx: Tx, token_id: str, user_id: str, name: str, digest: str, scopes: str, life: float | None, most: int, by: Action
) -> ApiToken:
    """Store a token, and record that. Raise LimitReached if the user has `most` tokens."""
    [(count,)] = tx.read("SELECT count(*) FROM tokens WHERE user_id = :user", {"user": user_id})
    if count >= most:
        raise LimitReached(f"you have {count:,} tokens, and no more are allowed: revoke some first")
    expires = None if life is None else by.now + life
    row = {"token": token_id, "user": user_id, "name": name, "digest": digest, "scopes": scopes}
    tx.write(
        "INSERT INTO tokens (token_id, user_id, name, digest, scopes, created, expires)"
        " VALUES (:token, :user, :name, :digest, :scopes, :now, :expires)",
        {**row, "now": by.now, "expires": expires},
    )
    audit.add(tx, by, user_id, f"{token_id} {name}: {scopes}")
    return _token((token_id, user_id, name, scopes, by.now, expires))


def listed(tx: Tx, user_id: str, limit: int, after: str) -> list[ApiToken]:
    """Return the tokens of a user, oldest first."""
    rows = tx.read(
        f"SELECT {_COLUMNS} FROM tokens WHERE user_id = :user AND token_id > :after ORDER BY token_id LIMIT :limit",
        {"user": user_id, "after": after, "limit": limit},
    )
    return [_token(row) for row in rows]


def revoke(tx: Tx, user_id: str, token_id: str, by: Action) -> None:
    """Delete a token, and record that. Raise NotFound if the user has no such token."""
    found = tx.write(
        "DELETE FROM tokens WHERE token_id = :token AND user_id = :user RETURNING token_id",
        {"token": token_id, "user": user_id},
    )
    if not found:
        raise NotFound(f"there is no token {token_id!r:.80}: it was revoked, or it never existed")
    audit.add(tx, by, user_id, token_id)


def find(tx: Tx, digest: str) -> ApiToken | None:
    """Return the token with this digest, also if it has expired; not those of disabled users."""
    may_act = accounts.may_act("tokens")
    row = tx.one(f"SELECT {_COLUMNS} FROM tokens WHERE digest = :digest AND {may_act}", {"digest": digest})
    return None if row is None else _token(row)


def _token(row: Sequence[Any]) -> ApiToken:
    token_id, user_id, name, scopes, created, expires = row
    ends = None if expires is None else at(expires)
    return ApiToken(token_id, user_id, name, tuple(scopes.split()), at(created), ends)
