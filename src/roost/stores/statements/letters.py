"""Dead letters: looked at, retried, dropped. Every query carries the owner."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from roost.core.addresses import of_key
from roost.core.envelopes import DeadLetter, Effect, Envelope, Kind, LetterKind, Publish, SendMail, SendTask
from roost.core.messages import at
from roost.core.priority import Priority, rank
from roost.errors import Conflict, LimitReached, NotFound, RoostError
from roost.ports import Row, Tx
from roost.stores.statements import agents, inbox, steps
from roost.stores.statements.posting import insert, takers

_LETTER = "letter_id, user_id, address, kind, fault, reason, attempts, created, envelope"


def get(tx: Tx, user_id: str, letter_id: str) -> DeadLetter:
    return _letter_of(_row(tx, user_id, letter_id))


def listed(tx: Tx, user_id: str, address: str | None, kind: str | None, limit: int, before: str) -> list[DeadLetter]:
    of_agent = " AND address = :address" if address is not None else ""
    of_kind = " AND kind = :kind" if kind is not None else ""
    rows = tx.read(
        f"SELECT {_LETTER} FROM dead_letters WHERE user_id = :user AND letter_id < :before{of_agent}{of_kind}"
        " ORDER BY letter_id DESC LIMIT :limit",
        {"user": user_id, "address": address, "kind": kind, "limit": limit, "before": before},
    )
    return [_letter_of(row) for row in rows]


def names(tx: Tx, user_id: str, address: str | None, until: float, limit: int, after: str) -> list[str]:
    of_agent = " AND address = :address" if address is not None else ""
    rows = tx.read(
        "SELECT letter_id FROM dead_letters WHERE user_id = :user AND letter_id > :after AND created <= :until"
        f"{of_agent} ORDER BY letter_id LIMIT :limit",
        {"user": user_id, "address": address, "until": until, "limit": limit, "after": after},
    )
    return [row[0] for row in rows]


def drop(tx: Tx, user_id: str, letter_id: str) -> None:
    _row(tx, user_id, letter_id, tx.for_update)
    _remove(tx, letter_id)


def retry(tx: Tx, user_id: str, letter_id: str, now: float) -> tuple[Envelope, ...]:
    letter = _letter_of(_row(tx, user_id, letter_id, tx.for_update))
    kept = letter.envelope
    if "effect" not in kept:
        return _back_into_its_inbox(tx, letter, _fresh(kept, now))
    effect = _effect_of(kept, now)
    _check_recipient(tx, user_id, effect)
    _remove(tx, letter_id)
    posted = inbox.post(tx, effect)
    if type(effect) is Publish and not posted:
        raise _untaken(tx, effect)
    return posted


def _untaken(tx: Tx, event: Publish) -> RoostError:
    if takers(tx, event):
        return LimitReached(
            f"the inbox of whoever takes the event {event.name!r} is full: try again when some of it is done"
        )
    return Conflict(f"nobody takes the event {event.name!r} still: have an agent subscribe to it, then retry")


def _back_into_its_inbox(tx: Tx, letter: DeadLetter, e: Envelope) -> tuple[Envelope, ...]:
    _check_room(tx, letter.user_id, e.address)
    _remove(tx, letter.letter_id)
    insert(tx, e)
    ids = {"id": e.envelope_id, "mail": e.body, "expires": e.expires}
    # Whoever retries has looked whether the step was done, and wants it to be done now; what is known is not repeated.
    tx.write("DELETE FROM steps WHERE envelope_id = :id AND done = 0", ids)
    tx.write(  # who gave no answer is asked again
        "UPDATE steps SET outcome = 'retried' WHERE envelope_id = :id AND kind = 'ask'"
        """ AND result NOT LIKE '{"text"%'""", ids,
    )  # fmt: skip
    steps.freshen(tx, e.envelope_id)
    if e.recorded:
        tx.write(
            "UPDATE tasks SET status = 'queued', attempts = 0, started = NULL, ended = NULL, result = NULL,"
            " error = NULL, fault = NULL, expires = :expires WHERE task_id = :id",
            ids,
        )
    elif e.kind is Kind.MAIL and not tx.write(
        "UPDATE mail SET processed = NULL, expires = :expires WHERE mail_id = :mail RETURNING mail_id", ids
    ):
        raise Conflict("this mail was removed and cannot be handled any more: drop the dead letter")
    return (e,)


# --- what is posted again ------------------------------------------------------------------------------


def _fresh(kept: Mapping[str, Any], now: float) -> Envelope:
    """As if it were sent now, by a person: untried, at the end of the queue, with as much time as it had at first."""
    expires = None if kept["expires"] is None else now + (kept["expires"] - kept["created"])
    level = Priority(kept["priority"])
    changes = {
        "kind": Kind(kept["kind"]), "priority": level, "created": now, "rank": rank(now, level), "due": 0.0,
        "attempts": 0, "expires": expires, "hops": 0, "claimed": False,
    }  # fmt: skip
    return Envelope(**{**kept, **changes})


def _effect_of(kept: Mapping[str, Any], now: float) -> Effect:
    values = {name: value for name, value in kept.items() if name != "effect"}
    if kept["effect"] == "event":
        return Publish(**{**values, "priority": Priority(kept["priority"]), "hops": 0, "optional": True})
    envelope = None if kept["envelope"] is None else _fresh(kept["envelope"], now)
    if kept["effect"] == "task":
        return SendTask(**{**values, "envelope": envelope})
    mail = SendMail(
        **{**values, "priority": Priority(kept["priority"]), "envelope": envelope, "check_by": None, "hops": 0}
    )
    return replace(mail, expires=envelope.expires) if envelope is not None else mail


def _check_recipient(tx: Tx, user_id: str, effect: Effect) -> None:
    """Whoever has the address now may be another than the one it was sent to."""
    envelope = None if type(effect) is Publish else effect.envelope  # type: ignore[union-attr]
    if envelope is not None:
        answers = type(effect) is SendMail and effect.reply_to is not None
        _check_room(tx, user_id, envelope.address, known=answers)


def _check_room(tx: Tx, user_id: str, address: str, *, known: bool = False) -> None:
    config, depth = agents.reach(tx, user_id, address, known)
    if depth >= config.inbox_limit:
        raise LimitReached(
            f"the inbox of the agent {of_key(address).agent_id!r} is full ({config.inbox_limit:,}): try again when it"
            " has done some of it"
        )


# --- inside --------------------------------------------------------------------------------------------


def _row(tx: Tx, user_id: str, letter_id: str, ending: str = "") -> Row:
    row = tx.one(
        f"SELECT {_LETTER} FROM dead_letters WHERE user_id = :user AND letter_id = :id{ending}",
        {"user": user_id, "id": letter_id},
    )
    if row is None:
        raise NotFound(f"there is no dead letter {letter_id!r:.80}: it was retried or dropped, or it never existed")
    return row


def _remove(tx: Tx, letter_id: str) -> None:
    tx.write("DELETE FROM dead_letters WHERE letter_id = :id", {"id": letter_id})


def _letter_of(row: Row) -> DeadLetter:
    letter_id, user_id, address, kind, fault, reason, attempts, created, envelope = row
    agent_id = of_key(address).agent_id if address else None
    return DeadLetter(
        letter_id, user_id, agent_id, LetterKind(kind), fault, reason, attempts, at(created), json.loads(envelope)
    )  # fmt: skip
