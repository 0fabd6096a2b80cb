"""API tokens of users, by id and by the digest of their secret."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from roost.core.accounts.tokens import ApiToken
from roost.core.talks.messages import at
from roost.errors import LimitReached, NotFound
from roost.ports import Tx

_COLUMNS = "token_id, user_id, name, scopes, created, expires"


def create(
    tx: Tx, token_id: str, user_id: str, name: str, digest: str, scopes: str, now: float, life: float | None, most: int
) -> ApiToken:
    """Store a token. Raise LimitReached if the user has `most` tokens."""
    [(count,)] = tx.read("SELECT count(*) FROM tokens WHERE user_id = :user", {"user": user_id})
    if count >= most:
        raise LimitReached(f"you have {count:,} tokens, and no more are allowed: revoke some first")
    expires = None if life is None else now + life
    row = {"token": token_id, "user": user_id, "name": name, "digest": digest, "scopes": scopes}
    tx.write(
        "INSERT INTO tokens (token_id, user_id, name, digest, scopes, created, expires)"
        " VALUES (:token, :user, :name, :digest, :scopes, :now, :expires)",
        {**row, "now": now, "expires": expires},
    )
    return _token((token_id, user_id, name, scopes, now, expires))


def listed(tx: Tx, user_id: str, limit: int, after: str) -> list[ApiToken]:
    """Return the tokens of a user, oldest first."""
    rows = tx.read(
        f"SELECT {_COLUMNS} FROM tokens WHERE user_id = :user AND token_id > :after ORDER BY token_id LIMIT :limit",
        {"user": user_id, "after": after, "limit": limit},
    )
    return [_token(row) for row in rows]


def revoke(tx: Tx, user_id: str, token_id: str) -> None:
    """Delete a token. Raise NotFound if the user has no such token."""
    found = tx.write(
        "DELETE FROM tokens WHERE token_id = :token AND user_id = :user RETURNING token_id",
        {"token": token_id, "user": user_id},
    )
    if not found:
        raise NotFound(f"there is no token {token_id!r:.80}: it was revoked, or it never existed")


def find(tx: Tx, digest: str) -> ApiToken | None:
    """Return the token with this digest, also if it has expired."""
    row = tx.one(f"SELECT {_COLUMNS} FROM tokens WHERE digest = :digest", {"digest": digest})
    return None if row is None else _token(row)


def _token(row: Sequence[Any]) -> ApiToken:
    token_id, user_id, name, scopes, created, expires = row
    ends = None if expires is None else at(expires)
    return ApiToken(token_id, user_id, name, tuple(scopes.split()), at(created), ends)
