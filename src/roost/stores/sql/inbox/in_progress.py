"""Envelopes in progress: recorded steps, and effects that a turn sends before it ends."""

from __future__ import annotations

import json

from roost.core.envelopes.effects import Broadcast, Effect, SendMail, SendTask, messages
from roost.core.envelopes.envelope import Envelope
from roost.core.journal.steps import Attempt, Recorded
from roost.core.meetings.effects import MeetingEffect
from roost.ports import Tx
from roost.stores import bulk, locking
from roost.stores.sql.journal import steps
from roost.stores.sql.sending.effects import post_all
from roost.stores.sql.sending.row_locks import claim_lock, locks_of


def recorded(tx: Tx, envelope: Envelope, epoch: int) -> tuple[Recorded, ...] | None:
    """Return the steps recorded by earlier attempts; None if it is gone or belongs to another activation."""
    ids = {"id": envelope.envelope_id, "address": envelope.address, "epoch": epoch}
    query = "SELECT 1 FROM agents a JOIN inbox i ON i.envelope_id = :id WHERE a.address = :address AND a.epoch = :epoch"
    if tx.one(query, ids) is None:
        return None
    return steps.recorded(tx, [envelope.envelope_id])


def _by_attempt(tx: Tx, attempt: Attempt, step: int, effects: tuple[Effect, ...], *_: object) -> locking.Rows:
    return (claim_lock(attempt), *locks_of(effects))


@locking.locks(_by_attempt)
def post_now(
    tx: Tx, attempt: Attempt, step: int, effects: tuple[Effect, ...], keys: tuple[str, ...], now: float
) -> tuple[Envelope, ...] | None:
    """Post effects before the turn ends, and record each under its key. Return None if the turn lost its claim."""
    if not steps.open(tx, attempt, now):
        return None
    results = json.dumps([(key, _name(effect)) for key, effect in zip(keys, effects, strict=True)])
    if not _record(tx, attempt, step, results, now):  # an earlier attempt was committed, and its reply was lost
        return _existing(tx, effects)
    return post_all(tx, effects, now)


def _existing(tx: Tx, effects: tuple[Effect, ...]) -> tuple[Envelope, ...]:
    mail = (effect.envelope for effect in effects if type(effect) is SendMail and effect.envelope is not None)
    sent = {e.envelope_id: e for e in (*mail, *(e for effect in effects for e in messages(effect)))}
    rows = bulk.read(tx, "SELECT envelope_id FROM inbox WHERE envelope_id IN", sorted(sent))
    return tuple(sent[row[0]] for row in rows)


def _record(tx: Tx, attempt: Attempt, number: int, results: str, now: float) -> bool:
    """Record sends; return False if they are recorded already."""
    rows = tx.write(
        "INSERT INTO steps (envelope_id, step, kind, name, result, done, created, holder)"
        " VALUES (:id, :step, 'sent', '', :result, 1, :now, :holder) ON CONFLICT (envelope_id, step) DO NOTHING"
        " RETURNING step",
        {"id": attempt.envelope_id, "step": number, "result": results, "now": now, "holder": attempt.holder},
    )
    return bool(rows)


def _name(effect: Effect) -> str:
    """Return the recorded result of a send: the id, or the number of recipients."""
    if type(effect) is SendTask:
        return effect.envelope.envelope_id
    if type(effect) is Broadcast:
        return str(len(effect.envelopes))
    if isinstance(effect, MeetingEffect):
        return effect.meeting_id
    return effect.mail_id if type(effect) is SendMail else effect.event_id  # type: ignore[union-attr]
