"""Deliveries of webhooks: facts that are stored with their commit, and posted until they arrive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from roost.core.envelopes.dead_letters import DeadLetter, LetterKind
from roost.core.talks.messages import at
from roost.core.webhooks.webhook import Delivery, DeliveryState, DueDelivery
from roost.errors import Conflict, NotFound
from roost.ports import Tx
from roost.stores.sql.tables.dead_letters import add_dead_letter, letter_id
from roost.stores.sql.tables.disabled import is_disabled
from roost.stores.sql.webhooks import webhooks

GONE = 410
_IS_ACTIVE = f"w.paused = 0 AND NOT {is_disabled('w.user_id')}"
_NEW = ("delivery_id", "webhook_id", "user_id", "event", "body", "state", "created", "due")
_COLUMNS = "delivery_id, webhook_id, event, state, created, attempts, due, status, seconds, error, reply"


@dataclass(frozen=True, slots=True)
class DeliveryAttempt:
    """Result of one attempt. `retry_at`: None if it was the last one."""

    due: DueDelivery
    ended: float
    seconds: float
    status: int | None
    error: str | None
    reply: str
    is_success: bool
    retry_at: float | None


@dataclass(frozen=True, slots=True)
class Paused:
    """Webhook that was paused because its requests fail."""

    webhook_id: str
    user_id: str
    name: str
    reason: str


def add(tx: Tx, delivery_id: str, webhook_id: str, user_id: str, event: str, body: str, now: float) -> None:
    """Store a delivery that is due now."""
    row = (delivery_id, webhook_id, user_id, event, body, DeliveryState.PENDING.value, now, now)
    tx.later("webhook_deliveries", _NEW, row)


def count_missed(tx: Tx, missed: Sequence[tuple[str, int]]) -> None:
    """Add to the number of facts that were not kept, by webhook; in order, so that writers do not block each other."""
    for webhook_id, count in sorted(missed):
        tx.write(
            "UPDATE webhooks SET missed = missed + :count WHERE webhook_id = :id", {"count": count, "id": webhook_id}
        )


def first_due(tx: Tx) -> dict[str, float]:
    """Return when the first pending delivery of each webhook is due; none of paused ones or of disabled users."""
    rows = tx.read(
        "SELECT d.webhook_id, min(d.due) FROM webhook_deliveries d JOIN webhooks w"
        f" ON w.webhook_id = d.webhook_id AND {_IS_ACTIVE} WHERE d.state = 'pending' GROUP BY d.webhook_id"
    )
    return {str(webhook_id): float(due) for webhook_id, due in rows}


def counts(tx: Tx) -> dict[str, int]:
    """Return the number of pending deliveries by webhook, paused ones too."""
    sql = "SELECT webhook_id, count(*) FROM webhook_deliveries WHERE state = 'pending' GROUP BY webhook_id"
    return {str(webhook_id): int(count) for webhook_id, count in tx.read(sql)}


def due(tx: Tx, webhook_id: str, now: float, most: int) -> tuple[list[DueDelivery], float | None]:
    """Return deliveries that are due, the oldest first, and when the next one is; nothing if it is paused or
    its user is disabled.

    While requests fail, only one is returned: it shows whether the others would arrive.
    """
    ids = {"id": webhook_id, "now": now}
    hook = tx.one(
        "SELECT url, secret, old_secret, old_until, failures FROM webhooks w"
        f" WHERE w.webhook_id = :id AND {_IS_ACTIVE}",
        ids,
    )
    if hook is None:
        return [], None
    url, secret, old_secret, old_until, failures = hook
    secrets = (secret, old_secret) if old_secret is not None and old_until > now else (secret,)
    rows = tx.read(
        "SELECT delivery_id, webhook_id, user_id, event, body, created, attempts FROM webhook_deliveries"
        " WHERE webhook_id = :id AND state = 'pending' AND due <= :now ORDER BY due, delivery_id LIMIT :most",
        {**ids, "most": 1 if failures else most},
    )
    [(following,)] = tx.read(
        "SELECT min(due) FROM webhook_deliveries WHERE webhook_id = :id AND state = 'pending'", ids
    )
    return [_due(row, url, secrets) for row in rows], following


def request_of(tx: Tx, user_id: str, webhook_id: str, delivery_id: str, event: str, body: str) -> DueDelivery:
    """Return a delivery that is not stored, for a test of the webhook."""
    hook = webhooks.get(tx, user_id, webhook_id)
    row = tx.one("SELECT secret FROM webhooks WHERE webhook_id = :id", {"id": webhook_id})
    assert row is not None
    return DueDelivery(delivery_id, webhook_id, user_id, event, body, 0.0, 0, hook.url, (row[0],))


def settle(tx: Tx, attempts: Sequence[DeliveryAttempt]) -> tuple[Paused, ...]:
    """Store the results of attempts; return the webhooks that are paused by them."""
    return tuple(paused for attempt in attempts if (paused := _settle(tx, attempt)) is not None)


def record(tx: Tx, attempt: DeliveryAttempt) -> Delivery:
    """Store a delivery that was attempted once and is over: a test."""
    one = attempt.due
    state = DeliveryState.DELIVERED if attempt.is_success else DeliveryState.FAILED
    row = (one.delivery_id, one.webhook_id, one.user_id, one.event, one.body, state.value, attempt.ended, attempt.ended)
    tx.later("webhook_deliveries", _NEW, row)
    _note(tx, attempt, state, attempt.ended)
    found = tx.one(f"SELECT {_COLUMNS} FROM webhook_deliveries WHERE delivery_id = :id", {"id": one.delivery_id})
    assert found is not None
    return _delivery(found)


def listed(tx: Tx, user_id: str, webhook_id: str, limit: int, before: str) -> list[Delivery]:
    """Return deliveries of a webhook, newest first, before `before`."""
    webhooks.get(tx, user_id, webhook_id)
    rows = tx.read(
        f"SELECT {_COLUMNS} FROM webhook_deliveries WHERE webhook_id = :id AND delivery_id < :before"
        " ORDER BY delivery_id DESC LIMIT :limit",
        {"id": webhook_id, "before": before, "limit": limit},
    )
    return [_delivery(row) for row in rows]


def prune(tx: Tx, webhook_id: str, kept: int) -> None:
    """Delete deliveries that are over, except the newest `kept`."""
    tx.write(
        "DELETE FROM webhook_deliveries WHERE webhook_id = :id AND state <> 'pending' AND delivery_id <="
        " (SELECT delivery_id FROM webhook_deliveries WHERE webhook_id = :id AND state <> 'pending'"
        " ORDER BY delivery_id DESC LIMIT 1 OFFSET :kept)",
        {"id": webhook_id, "kept": kept},
    )


def retry(tx: Tx, letter: DeadLetter, now: float) -> str:
    """Post a dead letter again, with the same id; return its webhook. Raise Conflict if that is gone."""
    stored = letter.envelope
    webhook_id, delivery_id = stored["webhook_id"], stored["envelope_id"]
    try:
        webhooks.get(tx, letter.user_id, webhook_id)
    except NotFound:
        raise Conflict("the webhook of this dead letter was deleted: drop the dead letter") from None
    tx.write("DELETE FROM webhook_deliveries WHERE delivery_id = :id", {"id": delivery_id})
    add(tx, delivery_id, webhook_id, letter.user_id, stored["event"], stored["body"], now)
    return str(webhook_id)


# --- inside --------------------------------------------------------------------------------------------


def _settle(tx: Tx, attempt: DeliveryAttempt) -> Paused | None:
    one = attempt.due
    if attempt.is_success:
        if _note(tx, attempt, DeliveryState.DELIVERED, attempt.ended):
            tx.write(
                "UPDATE webhooks SET failures = 0, last_success = :now WHERE webhook_id = :id",
                {"now": attempt.ended, "id": one.webhook_id},
            )
        return None
    is_over = attempt.retry_at is None and attempt.status != GONE
    state = DeliveryState.FAILED if is_over else DeliveryState.PENDING
    if not _note(tx, attempt, state, attempt.ended if attempt.retry_at is None else attempt.retry_at):
        return None  # the webhook was deleted
    [(name, paused, success)] = tx.write(
        "UPDATE webhooks SET failures = failures + 1 WHERE webhook_id = :id RETURNING name, paused, last_success",
        {"id": one.webhook_id},
    )
    if is_over:
        add_dead_letter(tx, _letter(attempt, name))
    reason = _reason_to_pause(attempt, is_over, success)
    if reason is None or paused:
        return None
    webhooks.pause(tx, one.user_id, one.webhook_id, reason)
    return Paused(one.webhook_id, one.user_id, name, reason)


def _reason_to_pause(attempt: DeliveryAttempt, is_over: bool, success: float | None) -> str | None:
    if attempt.status == GONE:
        return "the receiver answered 410 Gone"
    if is_over and (success is None or success < attempt.due.created):
        return f"no delivery has arrived since {at(attempt.due.created):%Y-%m-%d %H:%M} UTC: {attempt.error}"
    return None


def _note(tx: Tx, attempt: DeliveryAttempt, state: DeliveryState, due: float) -> bool:
    """Store the result of an attempt; return False if the delivery is gone."""
    values = {
        "id": attempt.due.delivery_id,
        "state": state.value,
        "due": due,
        "status": attempt.status,
        "seconds": attempt.seconds,
        "error": attempt.error,
        "reply": attempt.reply,
    }
    found = tx.write(
        "UPDATE webhook_deliveries SET state = :state, due = :due, attempts = attempts + 1, status = :status,"
        " seconds = :seconds, error = :error, reply = :reply WHERE delivery_id = :id RETURNING delivery_id",
        values,
    )
    return bool(found)


def _letter(attempt: DeliveryAttempt, name: str) -> DeadLetter:
    one = attempt.due
    stored = {"envelope_id": one.delivery_id, "webhook_id": one.webhook_id, "event": one.event, "body": one.body}
    reason = f"the webhook {name!r} could not be reached: {attempt.error}"
    return DeadLetter(
        letter_id(one.delivery_id, attempt.ended),
        one.user_id,
        None,
        LetterKind.WEBHOOK,
        "undeliverable",
        reason,
        one.attempts + 1,
        at(attempt.ended),
        stored,
    )


def _due(row: Sequence[Any], url: str, secrets: tuple[str, ...]) -> DueDelivery:
    delivery_id, webhook_id, user_id, event, body, created, attempts = row
    return DueDelivery(delivery_id, webhook_id, user_id, event, body, created, attempts, url, secrets)


def _delivery(row: Sequence[Any]) -> Delivery:
    delivery_id, webhook_id, event, state, created, attempts, due, status, seconds, error, reply = row
    next_attempt = at(due) if state == DeliveryState.PENDING else None
    return Delivery(
        delivery_id,
        webhook_id,
        event,
        DeliveryState(state),
        at(created),
        attempts,
        next_attempt,
        status,
        seconds,
        error,
        reply,
    )
