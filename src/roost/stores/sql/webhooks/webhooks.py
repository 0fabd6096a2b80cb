"""Webhooks of users. Every query includes the owner: another user's webhook is `NotFound`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from roost.core.talks.messages import at
from roost.core.webhooks.webhook import ChosenFacts, Webhook
from roost.errors import LimitReached, NotFound
from roost.ports import Tx

_COLUMNS = "webhook_id, user_id, name, url, events, created, paused, reason, failures, last_success, missed"


def create(
    tx: Tx, webhook_id: str, user_id: str, name: str, url: str, events: str, secret: str, now: float, most: int
) -> Webhook:
    """Store a webhook. Raise LimitReached if the user has `most` of them."""
    [(count,)] = tx.read("SELECT count(*) FROM webhooks WHERE user_id = :user", {"user": user_id})
    if count >= most:
        raise LimitReached(f"you have {count:,} webhooks, and no more are allowed: delete some first")
    row = {"id": webhook_id, "user": user_id, "name": name, "url": url, "events": events, "secret": secret, "now": now}
    tx.write(
        "INSERT INTO webhooks (webhook_id, user_id, name, url, events, secret, created)"
        " VALUES (:id, :user, :name, :url, :events, :secret, :now)",
        row,
    )
    return get(tx, user_id, webhook_id)


def get(tx: Tx, user_id: str, webhook_id: str) -> Webhook:
    row = tx.one(
        f"SELECT {_COLUMNS} FROM webhooks WHERE webhook_id = :id AND user_id = :user",
        {"id": webhook_id, "user": user_id},
    )
    if row is None:
        raise _missing(webhook_id)
    return _webhook(row)


def listed(tx: Tx, user_id: str, limit: int, after: str) -> list[Webhook]:
    """Return the webhooks of a user, oldest first."""
    rows = tx.read(
        f"SELECT {_COLUMNS} FROM webhooks WHERE user_id = :user AND webhook_id > :after"
        " ORDER BY webhook_id LIMIT :limit",
        {"user": user_id, "after": after, "limit": limit},
    )
    return [_webhook(row) for row in rows]


def change(tx: Tx, user_id: str, webhook_id: str, name: str | None, url: str | None, events: str | None) -> Webhook:
    """Change what is not None."""
    _update(
        tx,
        user_id,
        webhook_id,
        "name = COALESCE(:name, name), url = COALESCE(:url, url), events = COALESCE(:events, events)",
        {"name": name, "url": url, "events": events},
    )
    return get(tx, user_id, webhook_id)


def pause(tx: Tx, user_id: str, webhook_id: str, reason: str | None) -> Webhook:
    """Pause a webhook for a reason; without one, resume it."""
    paused = {"paused": int(reason is not None), "reason": reason}
    _update(tx, user_id, webhook_id, "paused = :paused, reason = :reason, failures = 0", paused)
    return get(tx, user_id, webhook_id)


def rotate(tx: Tx, user_id: str, webhook_id: str, secret: str, old_until: float) -> Webhook:
    """Replace the secret; the old one signs too until `old_until`."""
    values = {"secret": secret, "until": old_until}
    _update(tx, user_id, webhook_id, "old_secret = secret, secret = :secret, old_until = :until", values)
    return get(tx, user_id, webhook_id)


def delete(tx: Tx, user_id: str, webhook_id: str) -> None:
    """Delete a webhook with its deliveries. Its dead letters stay."""
    ids = {"id": webhook_id, "user": user_id}
    if not tx.write("DELETE FROM webhooks WHERE webhook_id = :id AND user_id = :user RETURNING webhook_id", ids):
        raise _missing(webhook_id)
    tx.write("DELETE FROM webhook_deliveries WHERE webhook_id = :id", ids)


def choices(tx: Tx, user_id: str | None = None) -> dict[str, tuple[ChosenFacts, ...]]:
    """Return what webhooks choose, by user; of one user if there is one. Paused webhooks choose too."""
    of_user = " WHERE user_id = :user" if user_id is not None else ""
    found: dict[str, tuple[ChosenFacts, ...]] = {} if user_id is None else {user_id: ()}
    rows = tx.read(f"SELECT user_id, webhook_id, events FROM webhooks{of_user} ORDER BY webhook_id", {"user": user_id})
    for owner, webhook_id, events in rows:
        found[owner] = (*found.get(owner, ()), ChosenFacts(webhook_id, tuple(events.split())))
    return found


def _update(tx: Tx, user_id: str, webhook_id: str, changes: str, values: dict[str, Any]) -> None:
    ids = {"id": webhook_id, "user": user_id}
    found = tx.write(
        f"UPDATE webhooks SET {changes} WHERE webhook_id = :id AND user_id = :user RETURNING webhook_id",
        {**values, **ids},
    )
    if not found:
        raise _missing(webhook_id)


def _missing(webhook_id: str) -> NotFound:
    return NotFound(f"there is no webhook {webhook_id!r:.80}: it was deleted, or it never existed")


def _webhook(row: Sequence[Any]) -> Webhook:
    webhook_id, user_id, name, url, events, created, paused, reason, failures, success, missed = row
    last = None if success is None else at(success)
    return Webhook(
        webhook_id,
        user_id,
        name,
        url,
        tuple(events.split()),
        at(created),
        bool(paused),
        reason,
        failures,
        last,
        missed,
    )
