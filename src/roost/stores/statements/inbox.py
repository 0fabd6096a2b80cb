"""The inbox of agents: post, claim, settle, release and dead-letter are the only verbs.

Whatever writes for an agent proves by its epoch that it still may. What is sent, by people and by turns
alike, is an effect; effects of a turn are posted in the transaction that settles it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from roost.core.envelopes import Broadcast, Effect, Envelope, SendMail, SendTask, messages
from roost.core.meetings.effects import MeetingEffect
from roost.core.steps import Recorded
from roost.ports import Tx
from roost.stores.statements import bulk, steps
from roost.stores.statements.envelopes import expired
from roost.stores.statements.posting import post, post_all
from roost.stores.statements.requests import answer_to, ask
from roost.stores.statements.settling import settle
from roost.stores.statements.taking import take

__all__ = [
    "answer_to", "ask", "claim", "expired", "post", "post_all", "post_now", "release", "settle", "take",
]  # fmt: skip

_OURS = "EXISTS (SELECT 1 FROM agents a WHERE a.address = :address AND a.epoch = :epoch)"


def claim(tx: Tx, envelope: Envelope, epoch: int) -> tuple[int, tuple[Recorded, ...]] | None:
    # Not one more than the store has: whoever claims it knows, and a look at the agent may have counted this try.
    ids = {"id": envelope.envelope_id, "address": envelope.address, "epoch": epoch, "tries": envelope.attempts + 1}
    rows = tx.write(
        f"UPDATE inbox SET attempts = :tries WHERE envelope_id = :id AND {_OURS} RETURNING attempts", ids
    )  # fmt: skip
    if not rows:
        return None
    return rows[0][0], steps.recorded(tx, [envelope.envelope_id])


def release(tx: Tx, envelope_ids: Sequence[str]) -> None:
    bulk.change(tx, "UPDATE inbox SET attempts = attempts - 1 WHERE attempts > 0 AND envelope_id IN", envelope_ids)


def post_now(
    tx: Tx, envelope_id: str, address: str, epoch: int, step: int, effects: tuple[Effect, ...],
    numbers: tuple[int, ...], now: float, given: Mapping[str, Any] | None = None,
) -> tuple[Envelope, ...] | None:  # fmt: skip
    if not _is_ours(tx, address, epoch, envelope_id):
        return None
    if given is not None:
        steps.keep_given(tx, envelope_id, address, given, now)
    named = json.dumps({number: _name(effect) for number, effect in zip(numbers, effects, strict=True)})
    if not _note(tx, envelope_id, step, "sent", "", named, True, now):  # it was done, and whoever did it never knew
        return _still_there(tx, effects)
    return post_all(tx, effects, now)


def _still_there(tx: Tx, effects: tuple[Effect, ...]) -> tuple[Envelope, ...]:
    mail = (effect.envelope for effect in effects if type(effect) is SendMail and effect.envelope is not None)
    sent = {e.envelope_id: e for e in (*mail, *(e for effect in effects for e in messages(effect)))}
    rows = bulk.among(tx, "SELECT envelope_id FROM inbox WHERE envelope_id IN", sorted(sent))
    return tuple(sent[row[0]] for row in rows)


def _is_ours(tx: Tx, address: str, epoch: int, envelope_id: str) -> bool:
    """Whether whoever asks still works for the agent, and what it works on is not over."""
    ids = {"address": address, "id": envelope_id}
    row = tx.one("SELECT a.epoch FROM agents a JOIN inbox i ON i.envelope_id = :id WHERE a.address = :address", ids)
    return row is not None and row[0] == epoch


def _note(
    tx: Tx, envelope_id: str, number: int, kind: str, name: str, result: str | None, done: bool, now: float
) -> bool:  # fmt: skip
    """Whether it was not on record yet."""
    rows = tx.write(
        "INSERT INTO steps (envelope_id, step, kind, name, result, done, created)"
        " VALUES (:id, :step, :kind, :name, :result, :done, :now) ON CONFLICT (envelope_id, step) DO NOTHING"
        " RETURNING step",
        {"id": envelope_id, "step": number, "kind": kind, "name": name, "result": result, "done": int(done),
         "now": now},
    )  # fmt: skip
    return bool(rows)


def _name(effect: Effect) -> str:
    """What a repeated turn is given for it: its id, or to how many it went."""
    if type(effect) is SendTask:
        return effect.envelope.envelope_id
    if type(effect) is Broadcast:
        return str(len(effect.envelopes))
    if isinstance(effect, MeetingEffect):
        return effect.meeting_id
    return effect.mail_id if type(effect) is SendMail else effect.event_id  # type: ignore[union-attr]
