"""New dead letters, each stored with the values that are needed to post it again."""

from __future__ import annotations

import dataclasses
import json
from hashlib import sha256
from typing import Any

from roost.core.envelopes.dead_letters import DeadLetter, LetterKind
from roost.core.envelopes.effects import Effect, Publish, SendMail, SendTask
from roost.core.envelopes.envelope import Envelope
from roost.core.runs import Closing
from roost.core.talks.messages import at
from roost.core.values.addresses import of_key
from roost.core.values.ids import RANDOM_BITS, encode
from roost.ports import Tx


def add_dead_letter(tx: Tx, letter: DeadLetter) -> None:
    """Store a dead letter; the store's listener is called after the commit, unless it was stored already."""
    rows = tx.write(
        "INSERT INTO dead_letters (letter_id, user_id, address, kind, fault, reason, attempts, created, envelope,"
        " envelope_id) VALUES (:id, :user, :address, :kind, :fault, :reason, :attempts, :created, :envelope, :name)"
        " ON CONFLICT (letter_id) DO NOTHING RETURNING letter_id",
        {
            "id": letter.letter_id,
            "user": letter.user_id,
            "kind": letter.kind,
            "fault": letter.fault,
            "address": f"{letter.user_id}/{letter.agent_id}" if letter.agent_id else "",
            "reason": letter.reason,
            "attempts": letter.attempts,
            "created": letter.created.timestamp(),
            "envelope": json.dumps(letter.envelope),
            "name": letter.envelope.get("envelope_id", ""),
        },
    )
    if rows:
        tx.died.append(letter)


def last_attempt_failed(c: Closing) -> DeadLetter:
    """Return the dead letter of an envelope after its last attempt."""
    e = c.envelope
    return _letter(
        e.envelope_id, e.address, LetterKind(e.kind), c.fault or "", c.reason, e.attempts, c.ended, _as_dict(e)
    )


def inbox_full(e: Envelope, limit: int | None = None) -> DeadLetter:
    """Return the dead letter of an event, broadcast or tick that found the inbox full."""
    suffix = "" if limit is None else f" ({limit:,})"
    reason = f"the inbox of the agent {of_key(e.address).agent_id!r} was full{suffix}"
    return _letter(e.envelope_id, e.address, LetterKind(e.kind), "full", reason, 0, e.created, _as_dict(e))


def unsubscribed(p: Publish) -> DeadLetter:
    reason = "no agent subscribes to this event: subscribe one, then retry or drop it"
    stored = {"effect": "event", **_as_dict(p)}
    created = at(p.created).timestamp()  # as stored with the event, so that the letter is found by the event
    return _letter(p.event_id, f"{p.user_id}/", LetterKind.EVENT, "untaken", reason, 0, created, stored)


def undeliverable(effect: Effect, reason: str, now: float) -> DeadLetter:
    """Return the dead letter of an effect of a turn whose recipient was deleted or full meanwhile."""
    if type(effect) is SendTask:
        name, sender, stored = (
            effect.envelope.envelope_id,
            effect.envelope.sender,
            {"effect": "task", **_as_dict(effect)},
        )
    elif type(effect) is SendMail:
        name, sender, stored = effect.mail_id, effect.sender, {"effect": "mail", **_as_dict(effect)}
    else:
        assert type(effect) is Publish
        name, sender, stored = effect.event_id, effect.publisher, {"effect": "event", **_as_dict(effect)}
    kind, _, key = sender.partition(":")
    address = key if kind == "agent" else f"{key}/"
    return _letter(name, address, LetterKind.OUTGOING, "undeliverable", reason, 1, now, stored)


def _letter(
    name: str,
    address: str,
    kind: LetterKind,
    fault: str,
    reason: str,
    attempts: int,
    now: float,
    stored: dict[str, Any],
) -> DeadLetter:
    owner, _, agent_id = address.rpartition("/")
    return DeadLetter(
        letter_id(name, now), owner, agent_id or None, kind, str(fault), reason, attempts, at(now), stored
    )


def letter_id(name: str, now: float) -> str:
    """Return an id ordered by time to the microsecond, and the same when the write is repeated."""
    milliseconds, microseconds = divmod(round(now * 1_000_000), 1_000)
    hash_bits = int.from_bytes(sha256(name.encode()).digest()[:8]) >> (64 - RANDOM_BITS + 10)
    return f"letter_{encode(milliseconds, microseconds << (RANDOM_BITS - 10) | hash_bits)}"


def _as_dict(thing: Envelope | Effect) -> dict[str, Any]:
    return {name: value for name, value in dataclasses.asdict(thing).items() if name not in ("journaled", "suspect")}
