"""Posting: what is sent, by people, by turns and by schedules, is put into inboxes here, and only here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from roost.core import patterns
from roost.core.addresses import unknown
from roost.core.envelopes import (
    Broadcast,
    DeadLetter,
    Effect,
    Envelope,
    Kind,
    Publish,
    SendMail,
    SendTask,
    messages,
    urgent_mail,
)
from roost.core.events import FAILED
from roost.core.meetings.effects import MeetingEffect
from roost.core.memories import Remember
from roost.core.messages import at
from roost.core.priority import rank
from roost.errors import Conflict, NotFound
from roost.ports import Tx
from roost.stores.statements import bulk, burial, meetings, memories
from roost.stores.statements.burial import bury
from roost.stores.statements.envelopes import ENVELOPE, envelope_of, put, put_all
from roost.stores.statements.resting import RESTS
from roost.stores.statements.sleep import arm
from roost.stores.together import Calls, done_by


def post_many(tx: Tx, calls: Calls) -> list[tuple[Envelope, ...] | None]:
    """Tasks that people send; one that may have been sent before, or to somebody who is gone, is posted by itself.

    So is all of it if there is something else: whether there is room for an event depends on what came before it.
    """
    if any(type(effect) is not SendTask for effect, *_ in calls):
        return [None] * len(calls)
    tasks = [effect.envelope for effect, *_ in calls if _is_new(effect)]
    lost = missing(tx, tasks)
    post_tasks(tx, [(envelope, None) for envelope in tasks if envelope.address not in lost])
    return [
        (effect.envelope,) if _is_new(effect) and effect.envelope.address not in lost else None for effect, *_ in calls
    ]


def _is_new(effect: SendTask) -> bool:
    return effect.envelope.recorded and effect.key is effect.schedule_id is None


@done_by(post_many, of_one_key=True)
def post(tx: Tx, effect: Effect, now: float = 0.0) -> tuple[Envelope, ...]:
    """What it has put into inboxes. NotFound if the recipient does not exist (any more)."""
    if type(effect) is SendTask:
        return _post_task(tx, effect)
    if type(effect) is SendMail:
        return _post_mail(tx, effect)
    if type(effect) is Remember:
        return memories.settle(tx, effect)
    if type(effect) is Broadcast:
        return _post_broadcast(tx, effect, insert_all(tx, effect.envelopes, frozenset()))
    if isinstance(effect, MeetingEffect):
        return meetings.effects(tx, (effect,), now)
    assert type(effect) is Publish
    return _publish(tx, effect)


def post_all(tx: Tx, effects: tuple[Effect, ...], now: float) -> tuple[Envelope, ...]:
    return post_each(tx, [(effects, now)])[0]


def post_each(
    tx: Tx, outgoing: list[tuple[tuple[Effect, ...], float]], full: frozenset[str] = frozenset()
) -> list[tuple[Envelope, ...]]:
    """Post what several turns send, each at its time; what each has put into inboxes."""
    plain = [envelope for effects, _ in outgoing for effect in effects for envelope in _plain(effect)]
    lost = insert_all(tx, plain, full)
    return [_post_rest(tx, effects, now, lost) if effects else () for effects, now in outgoing]


def post_tasks(tx: Tx, tasks: Sequence[tuple[Envelope, str | None]]) -> None:
    """Each with the id of its schedule, if it has one, to agents that exist."""
    put_all(tx, [envelope for envelope, _ in tasks], recorded=True)
    rows = [_task_of(envelope, schedule_id, None) for envelope, schedule_id in tasks]
    bulk.insert(tx, "tasks", _TASK, rows, " ON CONFLICT (task_id) DO NOTHING", _QUEUED)


def refuse_tick(tx: Tx, envelope: Envelope, schedule_id: str, letter: DeadLetter) -> None:
    """A tick that cannot be posted is a task that has failed."""
    row = (*_task_of(envelope, schedule_id, None), envelope.created, letter.reason, letter.fault)
    failed = {"status": "'failed'", "attempts": "0"}
    bulk.insert(tx, "tasks", (*_TASK, "ended", "error", "fault"), [row], " ON CONFLICT (task_id) DO NOTHING", failed)
    bury(tx, letter)


def insert(tx: Tx, envelope: Envelope) -> None:
    if not put(tx, envelope):
        raise NotFound(f"there is no agent {envelope.address.rpartition('/')[2]!r}: it was deleted meanwhile")


def _post_task(tx: Tx, effect: SendTask) -> tuple[Envelope, ...]:
    e = effect.envelope
    if not e.recorded:
        insert(tx, e)
        return (e,)
    if effect.key is not None and same_task(tx, e.address, e.sender, effect.key, e.body):
        return ()
    insert(tx, e)
    bulk.insert(tx, "tasks", _TASK, [_task_of(e, effect.schedule_id, effect.key)], constants=_QUEUED)
    return (e,)


_TASK = (
    "task_id", "address", "user_id", "sender", "prompt", "priority", "created", "expires", "schedule_id", "key"
)  # fmt: skip
_QUEUED = {"status": "'queued'", "attempts": "0"}


def _task_of(e: Envelope, schedule_id: str | None, key: str | None) -> tuple[Any, ...]:
    return (
        e.envelope_id, e.address, e.address.rpartition("/")[0], e.sender, e.body, e.priority, e.created, e.expires,
        schedule_id, key,
    )  # fmt: skip


def same_task(tx: Tx, address: str, sender: str, key: str, prompt: str) -> str | None:
    """The task that was sent with this key. Conflict if it says something else."""
    row = tx.one(
        "SELECT task_id, prompt FROM tasks WHERE address = :address AND sender = :sender AND key = :key",
        {"address": address, "sender": sender, "key": key},
    )
    if row is not None and row[1] != prompt:
        raise Conflict(f"the key {key!r} was used for another task: use a new key for a new task")
    return row[0] if row else None


def _post_mail(tx: Tx, m: SendMail) -> tuple[Envelope, ...]:
    if m.key is not None and same_mail(tx, m.sender, m.key, m.recipient, m.subject, m.body):
        return ()
    posted = () if m.envelope is None else _post_letter(tx, m.envelope, m.check_by)
    tx.write(
        "INSERT INTO mail (mail_id, thread_id, sender, recipient, subject, body, priority, rank, status, reply_to,"
        " created, expires, key) VALUES (:id, :thread, :sender, :recipient, :subject, :body, :priority, :rank,"
        " 'unread', :reply_to, :created, :expires, :key)",
        {"id": m.mail_id, "thread": m.thread_id or m.mail_id, "sender": m.sender, "recipient": m.recipient,
         "subject": m.subject, "body": m.body, "priority": m.priority, "rank": rank(m.created, m.priority),
         "reply_to": m.reply_to, "created": m.created, "expires": m.expires, "key": m.key},
    )  # fmt: skip
    if m.reply_to is not None:
        tx.write(
            "UPDATE mail SET status = 'replied', read_at = COALESCE(read_at, :now)"
            " WHERE mail_id = :id AND recipient = :sender AND status <> 'archived'",
            {"id": m.reply_to, "sender": m.sender, "now": m.created},
        )
    event = urgent_mail(m)
    return posted if event is None else posted + _publish(tx, event)


def same_mail(tx: Tx, sender: str, key: str, recipient: str, subject: str, body: str) -> str | None:
    """The mail that was sent with this key. Conflict if it says something else."""
    row = tx.one(
        "SELECT mail_id, recipient, subject, body FROM mail WHERE sender = :sender AND key = :key",
        {"sender": sender, "key": key},
    )
    if row is not None and tuple(row[1:]) != (recipient, subject, body):
        raise Conflict(f"the key {key!r} was used for another mail: use a new key for a new mail")
    return row[0] if row else None


def _post_letter(tx: Tx, e: Envelope, check_by: float | None) -> tuple[Envelope, ...]:
    """With those of its lane that waited for the next check and need not any more, first.

    A lane is as urgent as the most urgent in it, and its order is strict: older ones are due when this is.
    """
    insert(tx, e)
    if check_by is not None:
        arm(tx, e.address, "mail", check_by, earlier=True)
    rows = tx.write(
        "UPDATE inbox SET due = :due, rank = CASE WHEN rank > :rank THEN :rank ELSE rank END"
        " WHERE lane = :lane AND kind <> 'task' AND address = :address AND attempts = 0 AND due > :due"
        f" AND NOT {RESTS} RETURNING {ENVELOPE}",
        {"address": e.address, "lane": e.lane, "due": e.due, "rank": e.rank},
    )
    return (*sorted((envelope_of(row, claimed=False) for row in rows), key=lambda one: one.envelope_id), e)


def _publish(tx: Tx, p: Publish) -> tuple[Envelope, ...]:
    posted: list[Envelope] = []
    crowded = 0
    for address, config, awaited in takers(tx, p):
        envelope = _event_envelope(p, address, config)
        if not _has_room(tx, address, config["inbox_limit"]) and not _is_lacked(tx, address, awaited):
            bury(tx, burial.crowded_out(envelope, config["inbox_limit"]))
            crowded += 1
        elif put(tx, envelope):
            posted.append(envelope)
    tx.write(
        "INSERT INTO events (event_id, user_id, name, data, priority, publisher, created, takers)"
        " VALUES (:id, :user, :name, :data, :priority, :publisher, :created, :takers)"
        " ON CONFLICT (event_id) DO UPDATE SET takers = excluded.takers",
        {"id": p.event_id, "user": p.user_id, "name": p.name, "data": json.dumps(p.data), "priority": p.priority,
         "publisher": p.publisher, "created": at(p.created).timestamp(), "takers": len(posted)},
    )  # fmt: skip
    if not posted and not crowded and not p.optional:
        bury(tx, burial.untaken(p))
    return tuple(posted)


def takers(tx: Tx, p: Publish) -> list[tuple[str, Mapping[str, Any], list[str]]]:
    """Who hears it, each once, with its config, and the patterns by which it sleeps until this comes."""
    whole, first, rest = patterns.heads(p.name)
    rows = tx.read(
        "SELECT s.address, s.pattern, s.fields, s.awaited, a.config FROM subscriptions s"
        " JOIN agents a ON a.address = s.address"
        " WHERE s.user_id = :user AND s.head IN (:whole, :first, :rest) ORDER BY s.address",
        {"user": p.user_id, "whole": whole, "first": first, "rest": rest},
    )
    found: dict[str, tuple[str, list[str]]] = {}
    for address, pattern, fields, awaited, config in rows:
        if patterns.matches(pattern, p.name) and patterns.fields_match(json.loads(fields), p.data):
            found.setdefault(address, (config, []))[1].extend([pattern] if awaited else [])
    if p.name == FAILED:  # which is for all others
        found.pop(p.publisher.removeprefix("agent:"), None)
    return [(address, json.loads(config), awaited) for address, (config, awaited) in found.items()]


def _has_room(tx: Tx, address: str, limit: int) -> bool:
    last = "SELECT 1 FROM inbox WHERE address = :address AND address <> '' LIMIT 1 OFFSET :last"
    return tx.one(last, {"address": address, "last": limit - 1}) is None


def _is_lacked(tx: Tx, address: str, awaited: Sequence[str]) -> bool:
    """Whether a sleeper has none yet of what it awaits by one of these: a full inbox does not keep it out."""
    if not awaited:
        return False
    rows = tx.read(
        "SELECT DISTINCT lane FROM inbox WHERE kind = 'event' AND address = :address AND address <> ''"
        f" AND NOT {RESTS}",
        {"address": address},
    )
    there = [row[0].removeprefix("event:") for row in rows]
    return not all(any(patterns.matches(pattern, name) for name in there) for pattern in awaited)


def _event_envelope(p: Publish, address: str, config: Mapping[str, Any]) -> Envelope:
    body = json.dumps({"event_id": p.event_id, "name": p.name, "data": p.data})
    return Envelope(
        f"{p.event_id}:{address}", address, Kind.EVENT, f"event:{p.name}", p.priority, p.publisher, body, p.created,
        rank(p.created, p.priority), attempts=0, most_attempts=config["max_attempts"],
        retry_delay=config["retry_delay"], hops=p.hops, claimed=False, root=p.root or p.event_id,
    )  # fmt: skip


def _post_broadcast(tx: Tx, effect: Broadcast, lost: set[str]) -> tuple[Envelope, ...]:
    """Who is gone since is not among those it is for."""
    for envelope in effect.crowded:
        bury(tx, burial.crowded_out(envelope))
    return tuple(e for e in effect.envelopes if e.address not in lost) if lost else effect.envelopes


def _is_message(effect: Effect) -> TypeGuard[SendTask]:
    return type(effect) is SendTask and not effect.envelope.recorded


def _plain(effect: Effect) -> tuple[Envelope, ...]:
    """Its messages from agent to agent, which leave no record."""
    return messages(effect) if type(effect) is Broadcast or _is_message(effect) else ()


def insert_all(tx: Tx, envelopes: Sequence[Envelope], full: frozenset[str]) -> set[str]:
    """Messages from agent to agent, all at once; the addresses of those who do not exist any more."""
    lost = missing(tx, envelopes)
    put_all(tx, [e for e in envelopes if e.address not in lost] if lost else envelopes, recorded=False, full=full)
    return lost


def missing(tx: Tx, envelopes: Sequence[Envelope]) -> set[str]:
    """Those of their addresses at which there is nobody any more."""
    addresses = sorted({envelope.address for envelope in envelopes})
    if bulk.all_there(tx, "SELECT count(*) FROM agents WHERE address IN", addresses):
        return set()
    known = bulk.among(tx, "SELECT address FROM agents WHERE address IN", addresses)
    return set(addresses).difference(row[0] for row in known)


def _post_rest(tx: Tx, effects: tuple[Effect, ...], now: float, lost: set[str]) -> tuple[Envelope, ...]:
    posted: list[Envelope] = []
    if attended := tuple(effect for effect in effects if isinstance(effect, MeetingEffect)):
        posted += meetings.effects(tx, attended, now)
    for effect in effects:
        try:
            if isinstance(effect, MeetingEffect):
                continue
            if type(effect) is Broadcast:
                posted += _post_broadcast(tx, effect, lost)
            elif not _is_message(effect):
                posted += post(tx, effect, now)
            elif effect.envelope.address not in lost:
                posted.append(effect.envelope)
            else:
                raise unknown(effect.envelope.address.rpartition("/")[2])
        except (NotFound, Conflict) as error:  # it was there when the turn sent it
            bury(tx, burial.undeliverable(effect, str(error), now))
    return tuple(posted)
