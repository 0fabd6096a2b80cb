"""The window of a turn that asks for sleep: mail and events between its start and its end count."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from roost.core.agents import wake
from roost.core.agents.agent import AgentConfig
from roost.core.envelopes.effects import Publish
from roost.core.envelopes.envelope import Envelope
from roost.core.values import patterns
from roost.core.values.ids import encode
from roost.core.values.priority import Priority
from roost.ports import Row, Tx
from roost.stores import bulk, locking
from roost.stores.sql.events import like
from roost.stores.sql.sleep.conditions import await_condition
from roost.stores.sql.tables import dead_letters
from roost.stores.sql.tables.envelopes import event_envelope, put
from roost.stores.sql.tables.timers import arm

PAGE = 500
_EVENT = "event_id, user_id, name, data, priority, publisher, created, hops, root"


def locks_of(sleepers: Sequence[tuple[str, str]]) -> list[locking.RowLock]:
    """Return the locks of the owners of agents that will wait for events: `(key, condition)` of each."""
    owners = {key.rpartition("/")[0] for key, condition in sleepers if wake.patterns(wake.from_json(condition))}
    return [locking.user(owner) for owner in sorted(owners)]


def lock(tx: Tx, sleepers: Sequence[tuple[str, str]]) -> None:
    """Wait for events that are being published, and block later ones: `(key, condition)` of each sleeper.

    An event published meanwhile would find no subscription yet, and this transaction would not find the event.
    """
    if tx.for_share:
        owners = [row.key for row in locks_of(sleepers)]
        bulk.read(tx, "SELECT user_id FROM users WHERE user_id IN", owners, f" ORDER BY 1{tx.for_update}")


def fall_asleep(
    tx: Tx, key: str, condition: str, run_id: str, envelope_ids: Sequence[str], published: Sequence[str], now: float
) -> tuple[Envelope, ...]:
    """Put the agent to sleep, unless it was stopped; return the events of the window that are delivered to it.

    `published`: events that the turn itself published, which do not count. A condition that is already met is checked
    by a timer, since the inbox may contain nothing that leads to a check.
    """
    wanted = wake.from_json(condition)
    since = _start(tx, run_id, envelope_ids)
    events = _events(tx, key, wanted, since, frozenset(published))
    after = wanted
    for event in events:
        after = wake.heard(after, event.name)
    for priority in _handled_mail(tx, key, since):
        after = wake.got_mail(after, priority)
    if not await_condition(tx, key.rpartition("/")[0], key, after):
        return ()
    if wake.is_met(after):
        arm(tx, key, "wake", now, earlier=True)
    return _deliver(tx, key, events, since)


def _start(tx: Tx, run_id: str, envelope_ids: Sequence[str]) -> str:
    """Return the end of ids made when the turn began; for a repeated turn, when its first recorded step ended."""
    began = run_id.partition("_")[2]
    rows = bulk.read(tx, "SELECT min(created) FROM steps WHERE envelope_id IN", sorted(envelope_ids))
    return min([began, *(encode(int(first * 1_000), 0) for [first] in rows if first is not None)])


def _events(tx: Tx, key: str, wanted: wake.Condition, since: str, own: frozenset[str]) -> list[Publish]:
    """Return the oldest event of the window for each pattern of the condition, in order."""
    user_id = key.rpartition("/")[0]
    found: dict[str, Publish] = {}
    for pattern in wake.patterns(wanted):
        for row in _matching(tx, user_id, pattern, f"event_{since}"):
            event = _event_of(row)
            if event.event_id not in own and patterns.matches(pattern, event.name):
                found[event.event_id] = event
                break
    return [found[name] for name in sorted(found)]


def _matching(tx: Tx, user_id: str, pattern: str, since: str) -> Iterator[Row]:
    name = "name LIKE :name ESCAPE '!'" if patterns.ANY in pattern else "name = :name"
    ids = {"user": user_id, "name": like(pattern) if patterns.ANY in pattern else pattern, "limit": PAGE}
    rows: list[Row] = []
    while not rows or len(rows) == PAGE:
        rows = tx.read(
            f"SELECT {_EVENT} FROM events WHERE user_id = :user AND event_id > :since AND {name}"
            " ORDER BY event_id LIMIT :limit",
            {**ids, "since": since},
        )
        if not rows:
            return
        yield from rows
        since = rows[-1][0]


def _handled_mail(tx: Tx, key: str, since: str) -> list[Priority]:
    """Return the priorities of mail that arrived and was handled in the window by another turn."""
    rows = tx.read(
        "SELECT DISTINCT mail.priority FROM runs JOIN mail ON mail.mail_id = runs.envelope_id"
        " WHERE runs.address = :key AND runs.address <> '' AND runs.run_id > :run AND runs.kind = 'mail'"
        " AND runs.envelope_id > :mail",
        {"key": key, "run": f"run_{since}", "mail": f"mail_{since}"},
    )
    return [Priority(row[0]) for row in rows]


def _deliver(tx: Tx, key: str, events: Sequence[Publish], since: str) -> tuple[Envelope, ...]:
    """Put events into the inbox that the agent did not get yet, and remove their dead letters."""
    row = tx.one("SELECT config FROM agents WHERE address = :key", {"key": key}) if events else None
    if row is None:
        return ()
    subscriptions = AgentConfig.from_json(row[0]).subscriptions
    posted: list[Envelope] = []
    for event in events:
        envelope = event_envelope(event, key, json.loads(row[0]))
        is_subscribed = any(
            patterns.matches(subscription.pattern, event.name)
            and patterns.fields_match(subscription.fields, event.data)
            for subscription in subscriptions
        )
        if not is_subscribed and not _was_handled(tx, envelope, since) and put(tx, envelope):
            ids = {"id": event.event_id, "letter": dead_letters.unsubscribed(event).letter_id}
            tx.write("UPDATE events SET takers = takers + 1 WHERE event_id = :id", ids)
            tx.write("DELETE FROM dead_letters WHERE letter_id = :letter AND fault = 'untaken'", ids)
            posted.append(envelope)
    return tuple(posted)


def _was_handled(tx: Tx, envelope: Envelope, since: str) -> bool:
    found = tx.one(
        "SELECT 1 FROM runs WHERE address = :key AND address <> '' AND run_id > :run AND envelope_id = :id",
        {"key": envelope.address, "run": f"run_{since}", "id": envelope.envelope_id},
    )
    return found is not None


def _event_of(row: Row) -> Publish:
    event_id, user_id, name, data, priority, publisher, created, hops, root = row
    return Publish(event_id, user_id, name, json.loads(data), Priority(priority), publisher, created, hops, root=root)
