"""Events that are published: delivered to their subscribers, or stored as dead letters."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from roost.core.envelopes.effects import Publish
from roost.core.envelopes.envelope import Envelope
from roost.core.envelopes.events import FAILED
from roost.core.talks.messages import at
from roost.core.values import patterns
from roost.ports import Tx
from roost.stores.sql.tables import capacity, dead_letters
from roost.stores.sql.tables.dead_letters import add_dead_letter
from roost.stores.sql.tables.envelopes import event_envelope, put
from roost.stores.sql.tables.parked import PARKED


def publish(tx: Tx, p: Publish) -> tuple[Envelope, ...]:
    if tx.for_share:  # a turn that falls asleep waits for this commit and then finds the event
        tx.read(f"SELECT 1 FROM users WHERE user_id = :user{tx.for_share}", {"user": p.user_id})
    posted: list[Envelope] = []
    refused = 0
    for address, config, awaited in subscribers(tx, p):
        envelope = event_envelope(p, address, config)
        if capacity.without_room(tx, {address: 1}) and not _is_awaited(tx, address, awaited):
            add_dead_letter(tx, dead_letters.inbox_full(envelope, config["inbox_limit"]))
            refused += 1
        elif put(tx, envelope):
            posted.append(envelope)
    tx.write(
        "INSERT INTO events (event_id, user_id, name, data, priority, publisher, created, takers, hops, root)"
        " VALUES (:id, :user, :name, :data, :priority, :publisher, :created, :takers, :hops, :root)"
        " ON CONFLICT (event_id) DO UPDATE SET takers = excluded.takers",
        {
            "id": p.event_id,
            "user": p.user_id,
            "name": p.name,
            "data": json.dumps(p.data),
            "priority": p.priority,
            "publisher": p.publisher,
            "created": at(p.created).timestamp(),
            "takers": len(posted),
            "hops": p.hops,
            "root": p.root,
        },
    )
    if not posted and not refused and not p.optional:
        add_dead_letter(tx, dead_letters.unsubscribed(p))
    return tuple(posted)


def subscribers(tx: Tx, p: Publish) -> list[tuple[str, Mapping[str, Any], list[str]]]:
    """Return the agents that receive an event, with their config and the patterns they sleep on."""
    exact, first, rest = patterns.heads(p.name)
    rows = tx.read(
        "SELECT s.address, s.pattern, s.fields, s.awaited, a.config FROM subscriptions s"
        " JOIN agents a ON a.address = s.address"
        " WHERE s.user_id = :user AND s.head IN (:exact, :first, :rest) ORDER BY s.address",
        {"user": p.user_id, "exact": exact, "first": first, "rest": rest},
    )
    found: dict[str, tuple[str, list[str]]] = {}
    for address, pattern, fields, awaited, config in rows:
        if patterns.matches(pattern, p.name) and patterns.fields_match(json.loads(fields), p.data):
            found.setdefault(address, (config, []))[1].extend([pattern] if awaited else [])
    if p.name == FAILED:  # meant for other agents
        found.pop(p.publisher.removeprefix("agent:"), None)
    return [(address, json.loads(config), awaited) for address, (config, awaited) in found.items()]


def _is_awaited(tx: Tx, address: str, awaited: Sequence[str]) -> bool:
    """Return whether a sleeping agent still waits for an event of one of these patterns; a full inbox accepts it."""
    if not awaited:
        return False
    rows = tx.read(
        "SELECT DISTINCT lane FROM inbox WHERE kind = 'event' AND address = :address AND address <> ''"
        f" AND NOT {PARKED}",
        {"address": address},
    )
    received = [row[0].removeprefix("event:") for row in rows]
    return not all(any(patterns.matches(pattern, name) for name in received) for pattern in awaited)
