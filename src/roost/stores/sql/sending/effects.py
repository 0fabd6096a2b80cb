"""Effects: everything that people, turns and schedules send is put into inboxes here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeGuard

from roost.core.brain_data.memories import Remember
from roost.core.envelopes.effects import Broadcast, Effect, Publish, SendMail, SendTask, messages, urgent_mail
from roost.core.envelopes.envelope import Envelope
from roost.core.meetings.effects import MeetingEffect
from roost.core.values.addresses import unknown
from roost.core.values.priority import rank
from roost.errors import Conflict, LimitReached, NotFound
from roost.ports import Tx
from roost.stores import bulk, locking
from roost.stores.batching import Calls, batched_by
from roost.stores.sql.brain_data import memories
from roost.stores.sql.meetings import actions
from roost.stores.sql.sending.events import publish
from roost.stores.sql.sending.row_locks import by_effect
from roost.stores.sql.sending.tasks import insert, post_task, post_tasks
from roost.stores.sql.tables import capacity, dead_letters
from roost.stores.sql.tables.dead_letters import add_dead_letter
from roost.stores.sql.tables.envelopes import ENVELOPE, envelope_of, put_all
from roost.stores.sql.tables.parked import PARKED
from roost.stores.sql.tables.timers import arm


def post_many(tx: Tx, calls: Calls) -> list[tuple[Envelope, ...] | None]:
    """Post tasks of people in a batch; return None for possible duplicates and for unknown recipients.

    Also return None for tasks to an inbox without room for all of them, and for all calls if there is another kind of
    effect, since the room in an inbox depends on earlier effects.
    """
    if any(type(effect) is not SendTask for effect, *_ in calls):
        return [None] * len(calls)
    full = capacity.without_room(tx, Counter(effect.envelope.address for effect, *_ in calls))
    tasks = [effect.envelope for effect, *_ in calls if _is_new(effect) and effect.envelope.address not in full]
    unknown_recipients = unknown_addresses(tx, tasks)
    posted = [envelope for envelope in tasks if envelope.address not in unknown_recipients]
    post_tasks(tx, posted)
    posted_ids = {envelope.envelope_id for envelope in posted}
    return [(effect.envelope,) if effect.envelope.envelope_id in posted_ids else None for effect, *_ in calls]


def _is_new(effect: SendTask) -> bool:
    return effect.envelope.recorded and effect.key is effect.schedule_id is None


@locking.locks(by_effect)
@batched_by(post_many, of_one_key=True)
def post(tx: Tx, effect: Effect, now: float = 0.0) -> tuple[Envelope, ...]:
    """Post an effect; return the envelopes put into inboxes.

    Raise NotFound if the recipient does not exist, LimitReached if its inbox is full.
    """
    if type(effect) is SendTask:
        return post_task(tx, effect)
    if type(effect) is SendMail:
        return _post_mail(tx, effect)
    if type(effect) is Remember:
        return memories.apply(tx, effect)
    if type(effect) is Broadcast:
        return _post_broadcast(tx, effect, insert_all(tx, effect.envelopes))
    if isinstance(effect, MeetingEffect):
        return actions.effects(tx, (effect,), now)
    assert type(effect) is Publish
    return publish(tx, effect)


def post_all(tx: Tx, effects: tuple[Effect, ...], now: float) -> tuple[Envelope, ...]:
    return post_each(tx, [(effects, now)])[0]


def post_each(tx: Tx, outgoing: list[tuple[tuple[Effect, ...], float]]) -> list[tuple[Envelope, ...]]:
    """Post the effects of several turns, each at its time; return the envelopes of each."""
    between_agents = [envelope for effects, _ in outgoing for effect in effects for envelope in _messages_of(effect)]
    undelivered = insert_all(tx, between_agents)
    return [_post_others(tx, effects, now, undelivered) if effects else () for effects, now in outgoing]


def _post_mail(tx: Tx, m: SendMail) -> tuple[Envelope, ...]:
    if m.key is not None and same_mail(tx, m.sender, m.key, m.recipient, m.subject, m.body):
        return ()
    posted = () if m.envelope is None else _post_mail_envelope(tx, m.envelope, m.check_by)
    tx.write(
        "INSERT INTO mail (mail_id, thread_id, sender, recipient, subject, body, priority, rank, status, reply_to,"
        " created, expires, key, arrival) VALUES (:id, :thread, :sender, :recipient, :subject, :body, :priority, :rank,"
        " 'unread', :reply_to, :created, :expires, :key, :arrival)",
        {
            "id": m.mail_id,
            "thread": m.thread_id or m.mail_id,
            "sender": m.sender,
            "recipient": m.recipient,
            "subject": m.subject,
            "body": m.body,
            "priority": m.priority,
            "rank": rank(m.created, m.priority),
            "reply_to": m.reply_to,
            "created": m.created,
            "expires": m.expires,
            "key": m.key,
            "arrival": 0 if m.recipient.startswith("user:") else None,
        },
    )
    if m.reply_to is not None:
        tx.write(
            "UPDATE mail SET status = 'replied', read_at = COALESCE(read_at, :now)"
            " WHERE mail_id = :id AND recipient = :sender AND status <> 'archived'",
            {"id": m.reply_to, "sender": m.sender, "now": m.created},
        )
    event = urgent_mail(m)
    return posted if event is None else posted + publish(tx, event)


def same_mail(tx: Tx, sender: str, key: str, recipient: str, subject: str, body: str) -> str | None:
    """Return the mail sent with this key. Raise Conflict if it differs."""
    row = tx.one(
        "SELECT mail_id, recipient, subject, body FROM mail WHERE sender = :sender AND key = :key",
        {"sender": sender, "key": key},
    )
    if row is not None and tuple(row[1:]) != (recipient, subject, body):
        raise Conflict(f"the key {key!r} was used for another mail: use a new key for a new mail")
    return row[0] if row else None


def _post_mail_envelope(tx: Tx, e: Envelope, check_by: float | None) -> tuple[Envelope, ...]:
    """Post mail, preceded by earlier mail of its lane that no longer has to wait for the next check.

    A lane is as urgent as its most urgent mail, and its order is strict: older mail becomes due with this one.
    """
    capacity.check(tx, e.address)
    insert(tx, e)
    if check_by is not None:
        arm(tx, e.address, "mail", check_by, earlier=True)
    rows = tx.write(
        "UPDATE inbox SET due = :due, rank = CASE WHEN rank > :rank THEN :rank ELSE rank END"
        " WHERE lane = :lane AND kind <> 'task' AND address = :address AND attempts = 0 AND due > :due"
        f" AND NOT {PARKED} RETURNING {ENVELOPE}",
        {"address": e.address, "lane": e.lane, "due": e.due, "rank": e.rank},
    )
    return (*sorted((envelope_of(row, journaled=True) for row in rows), key=lambda one: one.envelope_id), e)


def _post_broadcast(tx: Tx, effect: Broadcast, undelivered: Undelivered) -> tuple[Envelope, ...]:
    """Return the envelopes of a broadcast; agents that were deleted since are skipped."""
    for envelope in effect.crowded:
        add_dead_letter(tx, dead_letters.inbox_full(envelope))
    if not undelivered:
        return effect.envelopes
    for envelope in effect.envelopes:
        if undelivered.get(envelope.envelope_id) == "full":
            add_dead_letter(tx, dead_letters.inbox_full(envelope))
    return tuple(e for e in effect.envelopes if e.envelope_id not in undelivered)


def _is_message(effect: Effect) -> TypeGuard[SendTask]:
    return type(effect) is SendTask and not effect.envelope.recorded


def _messages_of(effect: Effect) -> tuple[Envelope, ...]:
    """Return the messages between agents in an effect. They leave no record."""
    return messages(effect) if type(effect) is Broadcast or _is_message(effect) else ()


Undelivered = Mapping[str, str]
"""Envelopes that were not put into an inbox, by id, with the reason: `lost` or `full`."""


def insert_all(tx: Tx, envelopes: Sequence[Envelope]) -> Undelivered:
    """Put messages between agents into inboxes; return those without a recipient or without room."""
    unknown_recipients = unknown_addresses(tx, envelopes)
    undelivered = (
        {e.envelope_id: "lost" for e in envelopes if e.address in unknown_recipients} if unknown_recipients else {}
    )
    undelivered |= dict.fromkeys(capacity.overflow(tx, envelopes), "full")
    put_all(
        tx, [e for e in envelopes if e.envelope_id not in undelivered] if undelivered else envelopes, recorded=False
    )
    return undelivered


def unknown_addresses(tx: Tx, envelopes: Sequence[Envelope]) -> set[str]:
    """Return the addresses at which no agent exists any more."""
    addresses = sorted({envelope.address for envelope in envelopes})
    if bulk.all_exist(tx, "SELECT count(*) FROM agents WHERE address IN", addresses):
        return set()
    known = bulk.read(tx, "SELECT address FROM agents WHERE address IN", addresses)
    return set(addresses).difference(row[0] for row in known)


def _post_others(tx: Tx, effects: tuple[Effect, ...], now: float, undelivered: Undelivered) -> tuple[Envelope, ...]:
    posted: list[Envelope] = []
    if meeting_effects := tuple(effect for effect in effects if isinstance(effect, MeetingEffect)):
        posted += actions.effects(tx, meeting_effects, now)
    for effect in effects:
        try:
            if isinstance(effect, MeetingEffect):
                continue
            if type(effect) is Broadcast:
                posted += _post_broadcast(tx, effect, undelivered)
            elif not _is_message(effect):
                posted += post(tx, effect, now)
            elif (reason := undelivered.get(effect.envelope.envelope_id)) is None:
                posted.append(effect.envelope)
            elif reason == "full":
                raise capacity.full_error(tx, effect.envelope.address)
            else:
                raise unknown(effect.envelope.address.rpartition("/")[2])
        except (NotFound, Conflict, LimitReached) as error:  # the recipient existed and had room when the turn sent it
            add_dead_letter(tx, dead_letters.undeliverable(effect, str(error), now))
    return tuple(posted)
