"""Published events: queries. Every query includes the owner."""

from __future__ import annotations

import json

from roost.core.envelopes.events import Event
from roost.core.talks.messages import at
from roost.core.values.patterns import ANY
from roost.core.values.priority import Priority
from roost.ports import Row, Tx

_EVENT = "event_id, user_id, name, data, priority, publisher, created, takers"


def listed(
    tx: Tx, user_id: str, pattern: str | None, since: float | None, until: float | None, limit: int, before: str
) -> list[Event]:
    """Return events, newest first, before `before`; a superset of those that match the pattern."""
    chosen = ["user_id = :user", "event_id < :before"]
    if pattern is not None:
        chosen.append("name LIKE :like ESCAPE '!'" if ANY in pattern else "name = :name")
    if since is not None:
        chosen.append("created >= :since")
    if until is not None:
        chosen.append("created < :until")
    rows = tx.read(
        f"SELECT {_EVENT} FROM events WHERE {' AND '.join(chosen)} ORDER BY event_id DESC LIMIT :limit",
        {
            "user": user_id,
            "before": before,
            "like": like(pattern or ""),
            "name": pattern,
            "since": since,
            "until": until,
            "limit": limit,
        },
    )
    return [_event_of(row) for row in rows]


def like(pattern: str) -> str:
    """Return a LIKE pattern that matches at least what the pattern does: `*` ends at a dot, `%` does not."""
    for special in "!%_":
        pattern = pattern.replace(special, f"!{special}")
    return pattern.replace(ANY, "%")


def _event_of(row: Row) -> Event:
    event_id, user_id, name, data, priority, publisher, created, takers = row
    return Event(event_id, user_id, name, json.loads(data), Priority(priority), publisher, at(created), takers)
