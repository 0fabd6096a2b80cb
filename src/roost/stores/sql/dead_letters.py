"""Dead letters: read, retry, drop.

Every query includes the owner: another user's letter is `NotFound`, like one that does not exist.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from roost.core.envelopes.dead_letters import DeadLetter, LetterKind
from roost.core.envelopes.effects import Effect, Publish, SendMail, SendTask
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.failures.faults import Fault
from roost.core.talks.messages import at
from roost.core.values.addresses import of_key
from roost.core.values.priority import Priority, rank
from roost.errors import Conflict, LimitReached, NotFound, RoostError
from roost.ports import Row, Tx
from roost.stores.sql.agents import agents
from roost.stores.sql.journal import steps
from roost.stores.sql.sending import effects
from roost.stores.sql.sending.events import subscribers
from roost.stores.sql.sending.tasks import insert
from roost.stores.sql.webhooks import deliveries

RUNS = 50
"""Runs of an agent before a dead letter among which its last attempt is searched."""
_RUN = (
    "(SELECT r.run_id FROM (SELECT run_id, envelope_id FROM runs WHERE address = dead_letters.address AND address <> ''"
    f" AND run_id < 'run_' || SUBSTR(dead_letters.letter_id, 8, 12) || 'g' ORDER BY run_id DESC LIMIT {RUNS}) AS r"
    " WHERE r.envelope_id = dead_letters.envelope_id AND r.envelope_id <> '' ORDER BY r.run_id DESC LIMIT 1)"
)
_LETTER = f"letter_id, user_id, address, kind, fault, reason, attempts, created, envelope, {_RUN}"


def get(tx: Tx, user_id: str, letter_id: str) -> DeadLetter:
    return _letter_of(_row(tx, user_id, letter_id))


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Dead letters of one agent, of one kind, with one fault; None: of all."""

    address: str | None = None
    kind: str | None = None
    fault: str | None = None

    def condition(self) -> tuple[str, dict[str, Any]]:
        """Return the SQL of the condition, with its parameters."""
        given = {name: value for name in ("address", "kind", "fault") if (value := getattr(self, name)) is not None}
        return "".join(f" AND {name} = :{name}" for name in given), given


def listed(tx: Tx, user_id: str, wanted: LetterFilter, limit: int, before: str) -> list[DeadLetter]:
    """Return dead letters, newest first, before `before`."""
    condition, given = wanted.condition()
    rows = tx.read(
        f"SELECT {_LETTER} FROM dead_letters WHERE user_id = :user AND letter_id < :before{condition}"
        " ORDER BY letter_id DESC LIMIT :limit",
        {**given, "user": user_id, "limit": limit, "before": before},
    )
    return [_letter_of(row) for row in rows]


def letter_ids(tx: Tx, user_id: str, wanted: LetterFilter, until: float, limit: int, after: str) -> list[str]:
    """Return the ids of dead letters created until `until`, oldest first, after `after`."""
    condition, given = wanted.condition()
    rows = tx.read(
        "SELECT letter_id FROM dead_letters WHERE user_id = :user AND letter_id > :after AND created <= :until"
        f"{condition} ORDER BY letter_id LIMIT :limit",
        {**given, "user": user_id, "until": until, "limit": limit, "after": after},
    )
    return [row[0] for row in rows]


def drop(tx: Tx, user_id: str, letter_id: str) -> None:
    _row(tx, user_id, letter_id, tx.for_update)
    _remove(tx, letter_id)


def retry(tx: Tx, user_id: str, letter_id: str, now: float) -> tuple[Envelope, ...]:
    """Post a dead letter again and remove it; return the envelopes put into inboxes.

    Its attempts are reset, and it gets as much time as it had. Recorded steps stay, except those whose result is
    unknown. Raise NotFound, Conflict or LimitReached if it cannot be posted; then it stays.
    """
    letter = _letter_of(_row(tx, user_id, letter_id, tx.for_update))
    if letter.kind is LetterKind.WEBHOOK:
        deliveries.retry(tx, letter, now)
        _remove(tx, letter_id)
        return ()
    stored = _new_origin(letter.envelope) if letter.fault == Fault.BUDGET else letter.envelope
    if "effect" not in stored:
        return _insert_again(tx, letter, _reset(stored, now))
    effect = _effect_of(stored, now)
    _check_recipient(tx, user_id, effect)
    _remove(tx, letter_id)
    posted = effects.post(tx, effect)
    if type(effect) is Publish and not posted:
        raise _undelivered_event(tx, effect)
    return posted


def _undelivered_event(tx: Tx, event: Publish) -> RoostError:
    if subscribers(tx, event):
        return LimitReached(f"the inboxes of all subscribers to the event {event.name!r} are full: try again later")
    return Conflict(f"no agent subscribes to the event {event.name!r}: subscribe one, then retry")


def _insert_again(tx: Tx, letter: DeadLetter, e: Envelope) -> tuple[Envelope, ...]:
    _check_room(tx, letter.user_id, e.address)
    _remove(tx, letter.letter_id)
    insert(tx, e)
    ids = {"id": e.envelope_id, "mail": e.body, "expires": e.expires}
    # The person who retries has checked steps with an unknown result and wants them done; known results are reused.
    tx.write("DELETE FROM steps WHERE envelope_id = :id AND done = 0", ids)
    tx.write(  # requests without an answer are sent again
        "UPDATE steps SET outcome = 'retried' WHERE envelope_id = :id AND kind = 'ask'"
        """ AND result NOT LIKE '{"text"%'""",
        ids,
    )
    steps.prepare_retry(tx, e.envelope_id)
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


# --- envelopes and effects to post again ------------------------------------------------------------------------------


def _new_origin(stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the stored values without their origin, whose exhausted budget would make a retry fail at once."""
    inner = stored.get("envelope")
    return {**stored, "root": "", **({"envelope": {**inner, "root": ""}} if inner else {})}


def _reset(stored: Mapping[str, Any], now: float) -> Envelope:
    """Return the envelope as if a person sent it now: no attempts, at the end of the queue, with its full time."""
    expires = None if stored["expires"] is None else now + (stored["expires"] - stored["created"])
    level = Priority(stored["priority"])
    changes = {
        "kind": Kind(stored["kind"]),
        "priority": level,
        "created": now,
        "rank": rank(now, level),
        "due": 0.0,
        "attempts": 1,
        "expires": expires,
        "hops": 0,
        "journaled": True,
    }
    return Envelope(**{**stored, **changes})


def _effect_of(stored: Mapping[str, Any], now: float) -> Effect:
    values = {name: value for name, value in stored.items() if name != "effect"}
    if stored["effect"] == "event":
        return Publish(**{**values, "priority": Priority(stored["priority"]), "hops": 0, "optional": True})
    envelope = None if stored["envelope"] is None else _reset(stored["envelope"], now)
    if stored["effect"] == "task":
        return SendTask(**{**values, "envelope": envelope})
    mail = SendMail(
        **{
            **values,
            "priority": Priority(stored["priority"]),
            "envelope": envelope,
            "check_by": None,
            "hops": 0,
        }
    )
    return replace(mail, expires=envelope.expires) if envelope is not None else mail


def _check_recipient(tx: Tx, user_id: str, effect: Effect) -> None:
    """Check the recipient: another agent may have the address now."""
    envelope = None if type(effect) is Publish else effect.envelope  # type: ignore[union-attr]
    if envelope is not None:
        is_reply = type(effect) is SendMail and effect.reply_to is not None
        _check_room(tx, user_id, envelope.address, known=is_reply)


def _check_room(tx: Tx, user_id: str, address: str, *, known: bool = False) -> None:
    config, depth = agents.recipient(tx, user_id, address, known)
    if depth >= config.inbox_limit:
        raise LimitReached(
            f"the inbox of the agent {of_key(address).agent_id!r} is full ({config.inbox_limit:,}): try again when it"
            " has handled some"
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
    letter_id, user_id, address, kind, fault, reason, attempts, created, envelope, run_id = row
    agent_id = of_key(address).agent_id if address else None
    return DeadLetter(
        letter_id,
        user_id,
        agent_id,
        LetterKind(kind),
        fault,
        reason,
        attempts,
        at(created),
        json.loads(envelope),
        run_id,
    )
