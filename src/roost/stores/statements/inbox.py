"""The inbox of agents: post, claim, settle, release and dead-letter are the only verbs.

Whatever writes for an agent proves by its epoch that it still may. What is sent, by people and by turns
alike, is an effect; effects of a turn are posted in the transaction that settles it.
"""

from __future__ import annotations

import json

from roost.core.envelopes import Effect, Envelope, Recorded, SendMail, SendTask
from roost.ports import Tx
from roost.stores.statements.posting import post, post_all
from roost.stores.statements.settling import settle
from roost.stores.statements.taking import take

__all__ = [
    "answer_to", "ask", "begin_step", "claim", "end_step", "forget_step", "post", "post_all", "post_now", "settle",
    "take",
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
    steps = tx.read("SELECT step, kind, name, result, done FROM steps WHERE envelope_id = :id ORDER BY step", ids)
    return rows[0][0], tuple(Recorded(n, kind, name, result, bool(done)) for n, kind, name, result, done in steps)


def post_now(
    tx: Tx, envelope_id: str, address: str, epoch: int, number: int, effects: tuple[Effect, ...], now: float
) -> tuple[Envelope, ...] | None:
    if not _is_ours(tx, address, epoch):
        return None
    named = json.dumps([_name(effect) for effect in effects])
    _note(tx, envelope_id, number, "sent", "", named, True, now)
    return post_all(tx, effects, now)


def begin_step(tx: Tx, envelope_id: str, address: str, epoch: int, number: int, name: str, now: float) -> bool:
    if not _is_ours(tx, address, epoch):
        return False
    _note(tx, envelope_id, number, "step", name, None, False, now)
    return True


def end_step(tx: Tx, envelope_id: str, address: str, epoch: int, number: int, result: str) -> None:
    tx.write(
        f"UPDATE steps SET result = :result, done = 1 WHERE envelope_id = :id AND step = :step AND {_OURS}",
        {"id": envelope_id, "step": number, "address": address, "epoch": epoch, "result": result},
    )


def forget_step(tx: Tx, envelope_id: str, address: str, epoch: int, number: int) -> None:
    tx.write(
        f"DELETE FROM steps WHERE envelope_id = :id AND step = :step AND {_OURS}",
        {"id": envelope_id, "step": number, "address": address, "epoch": epoch},
    )


def _is_ours(tx: Tx, address: str, epoch: int) -> bool:
    row = tx.one("SELECT epoch FROM agents WHERE address = :address", {"address": address})
    return row is not None and row[0] == epoch


def _note(
    tx: Tx, envelope_id: str, number: int, kind: str, name: str, result: str | None, done: bool, now: float
) -> None:  # fmt: skip
    tx.write(
        "INSERT INTO steps (envelope_id, step, kind, name, result, done, created)"
        " VALUES (:id, :step, :kind, :name, :result, :done, :now) ON CONFLICT (envelope_id, step) DO NOTHING",
        {"id": envelope_id, "step": number, "kind": kind, "name": name, "result": result, "done": int(done),
         "now": now},
    )  # fmt: skip


def ask(
    tx: Tx, envelope_id: str, address: str, epoch: int, number: int, effect: SendTask, now: float
) -> tuple[Envelope, ...] | None:
    if not _is_ours(tx, address, epoch):
        return None
    _note(tx, envelope_id, number, "ask", effect.envelope.address, None, False, now)
    return post(tx, effect)


def answer_to(tx: Tx, envelope_id: str, number: int, give_up: bool) -> str | None:
    if give_up:
        tx.write(
            "UPDATE steps SET done = 1, result = :none WHERE envelope_id = :id AND step = :step AND done = 0",
            {"id": envelope_id, "step": number, "none": json.dumps({"timeout": True})},
        )
    row = tx.one(
        "SELECT result FROM steps WHERE envelope_id = :id AND step = :step AND done = 1",
        {"id": envelope_id, "step": number},
    )
    return row[0] if row else None


def _name(effect: Effect) -> str:
    if type(effect) is SendTask:
        return effect.envelope.envelope_id
    return effect.mail_id if type(effect) is SendMail else effect.event_id  # type: ignore[union-attr]
