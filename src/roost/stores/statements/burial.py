"""How dead letters come to be: of each kind what is kept of it, so that it can be posted again."""

from __future__ import annotations

import dataclasses
import json
from hashlib import sha256
from typing import Any

from roost.core.addresses import of_key
from roost.core.envelopes import DeadLetter, Effect, Envelope, LetterKind, Publish, SendMail, SendTask, WorkClosing
from roost.core.ids import RANDOM_BITS, encode
from roost.core.messages import at
from roost.ports import Tx


def bury(tx: Tx, letter: DeadLetter) -> None:
    """Who listens to the store is told of it after the commit; of one that is there already, nobody is."""
    rows = tx.write(
        "INSERT INTO dead_letters (letter_id, user_id, address, kind, fault, reason, attempts, created, envelope,"
        " envelope_id) VALUES (:id, :user, :address, :kind, :fault, :reason, :attempts, :created, :envelope, :name)"
        " ON CONFLICT (letter_id) DO NOTHING RETURNING letter_id",
        {"id": letter.letter_id, "user": letter.user_id, "kind": letter.kind, "fault": letter.fault,
         "address": f"{letter.user_id}/{letter.agent_id}" if letter.agent_id else "", "reason": letter.reason,
         "attempts": letter.attempts, "created": letter.created.timestamp(), "envelope": json.dumps(letter.envelope),
         "name": letter.envelope.get("envelope_id", "")},
    )  # fmt: skip
    if rows:
        tx.died.append(letter)


def failed(c: WorkClosing) -> DeadLetter:
    """Of an envelope that was tried for the last time."""
    e = c.envelope
    return _letter(
        e.envelope_id, e.address, LetterKind(e.kind), c.fault or "", c.reason, e.attempts, c.ended, _plain(e)
    )  # fmt: skip


def crowded_out(e: Envelope, limit: int | None = None) -> DeadLetter:
    """Of an event, a broadcast, or the tick of a schedule, that found an inbox full."""
    many = "" if limit is None else f" ({limit:,})"
    reason = f"the inbox of the agent {of_key(e.address).agent_id!r} was full{many}"
    return _letter(e.envelope_id, e.address, LetterKind(e.kind), "full", reason, 0, e.created, _plain(e))


def untaken(p: Publish) -> DeadLetter:
    reason = "nobody takes this event: have an agent subscribe to it, then retry or drop it"
    kept = {"effect": "event", **_plain(p)}
    return _letter(p.event_id, f"{p.user_id}/", LetterKind.EVENT, "untaken", reason, 0, p.created, kept)


def undeliverable(effect: Effect, reason: str, now: float) -> DeadLetter:
    """Of what a turn has sent, to someone who was there then."""
    if type(effect) is SendTask:
        name, sender, kept = effect.envelope.envelope_id, effect.envelope.sender, {"effect": "task", **_plain(effect)}
    elif type(effect) is SendMail:
        name, sender, kept = effect.mail_id, effect.sender, {"effect": "mail", **_plain(effect)}
    else:
        assert type(effect) is Publish
        name, sender, kept = effect.event_id, effect.publisher, {"effect": "event", **_plain(effect)}
    kind, _, key = sender.partition(":")
    address = key if kind == "agent" else f"{key}/"
    return _letter(name, address, LetterKind.OUTGOING, "undeliverable", reason, 1, now, kept)


def _letter(
    name: str, address: str, kind: LetterKind, fault: str, reason: str, attempts: int, now: float,
    kept: dict[str, Any],
) -> DeadLetter:  # fmt: skip
    owner, _, agent_id = address.rpartition("/")
    return DeadLetter(
        _letter_id(name, now), owner, agent_id or None, kind, str(fault), reason, attempts, at(now), kept
    )  # fmt: skip


def _letter_id(name: str, now: float) -> str:
    """Ordered by time as all ids are, to the microsecond, and the same when the same write is done again."""
    milliseconds, microseconds = divmod(round(now * 1_000_000), 1_000)
    chance = int.from_bytes(sha256(name.encode()).digest()[:8]) >> (64 - RANDOM_BITS + 10)
    return f"letter_{encode(milliseconds, microseconds << (RANDOM_BITS - 10) | chance)}"


def _plain(thing: Envelope | Effect) -> dict[str, Any]:
    return {name: value for name, value in dataclasses.asdict(thing).items() if name != "claimed"}
