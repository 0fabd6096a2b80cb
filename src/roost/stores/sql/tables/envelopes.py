"""Envelopes as rows of the inbox: written one or many at a time, and read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from roost.core.agents.agent import AgentConfig, State
from roost.core.envelopes.effects import Publish
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.values.priority import Priority, rank
from roost.ports import Row, Tx
from roost.stores import bulk
from roost.stores.sql.tables import capacity
from roost.stores.sql.tables.parked import PARKED
from roost.stores.sql.tables.timers import arm_all

_COLUMNS = bulk.columns(
    "envelope_id, address, kind, lane, priority, sender, body, created, rank, due, attempts, most_attempts,"
    " retry_delay, expires, hops, recorded, ask, root"
)
ENVELOPE = ", ".join([*_COLUMNS, "suspect"])
_INSERT = (
    f"INSERT INTO inbox ({', '.join(_COLUMNS)}, seq, busy) SELECT {', '.join(f':{name}' for name in _COLUMNS)}, 0, ''"
    " FROM agents WHERE address = :address ON CONFLICT (envelope_id) DO NOTHING RETURNING attempts"
)
_BULK_COLUMNS = tuple(name for name in _COLUMNS if name not in ("attempts", "recorded"))
_values = attrgetter(*_BULK_COLUMNS)


def envelope_of(row: Row, *, journaled: bool = False) -> Envelope:
    (
        envelope_id,
        address,
        kind,
        lane,
        priority,
        sender,
        body,
        created,
        ranked,
        due,
        attempts,
        most,
        delay,
        expires,
        hops,
        recorded,
        ask,
        root,
        suspect,
    ) = row[:19]
    return Envelope(
        envelope_id,
        address,
        _KINDS[kind],
        lane,
        _PRIORITIES[priority],
        sender,
        body,
        created,
        ranked,
        due,
        attempts + 1,
        most,
        delay,
        expires,
        hops,
        bool(recorded),
        ask,
        root,
        journaled,
        suspect,
    )


def event_envelope(p: Publish, address: str, config: Mapping[str, Any]) -> Envelope:
    body = json.dumps({"event_id": p.event_id, "name": p.name, "data": p.data})
    return Envelope(
        f"{p.event_id}:{address}",
        address,
        Kind.EVENT,
        f"event:{p.name}",
        p.priority,
        p.publisher,
        body,
        p.created,
        rank(p.created, p.priority),
        most_attempts=config["max_attempts"],
        retry_delay=config["retry_delay"],
        hops=p.hops,
        root=p.root or p.event_id,
    )


_KINDS = {str(kind): kind for kind in Kind}
_PRIORITIES = {str(priority): priority for priority in Priority}


def put(tx: Tx, envelope: Envelope) -> bool:
    """Insert an envelope; return False if its agent does not exist."""
    values = {name: getattr(envelope, name) for name in _COLUMNS}
    values["recorded"] = int(envelope.recorded)
    values["attempts"] = 0
    inserted = bool(tx.write(_INSERT, values))
    capacity.subtract(tx, envelope.address)
    if inserted and envelope.expires is not None:
        watch_expiry(tx, {envelope.address: envelope.expires})
    return inserted


def put_all(tx: Tx, envelopes: Sequence[Envelope], *, recorded: bool) -> None:
    """Insert envelopes to existing agents, all recorded or none; existing rows are unchanged."""
    constants = {"attempts": "0", "recorded": str(int(recorded)), "seq": "0", "busy": "''"}
    bulk.insert(
        tx, "inbox", _BULK_COLUMNS, [_values(e) for e in envelopes], " ON CONFLICT (envelope_id) DO NOTHING", constants
    )
    expiring: dict[str, float] = {}
    free = tx.capacity
    for envelope in envelopes:
        if (places := free.get(envelope.address)) is not None:
            free[envelope.address] = places - 1
        if envelope.expires is not None:
            expiring[envelope.address] = min(envelope.expires, expiring.get(envelope.address, envelope.expires))
    watch_expiry(tx, expiring)


def watch_expiry(tx: Tx, first: Mapping[str, float]) -> None:
    """Arm timers for the first expiry in each inbox, whether the agent works or not."""
    timers = [(address, "expiry", due) for address, due in first.items()]
    arm_all(tx, timers, " WHERE timers.due > excluded.due")


def expired(
    tx: Tx, addresses: Sequence[str], now: float, knows: Callable[[str], bool]
) -> tuple[tuple[Envelope, int], ...]:
    """Return envelopes that expired unhandled, each with its agent's epoch.

    These are envelopes that wait for a retry, and all envelopes of agents that sleep, are stopped or paused, or have an
    unknown profile. `knows` says whether a profile is known.
    """
    rows = bulk.read(
        tx,
        f"SELECT {', '.join(f'inbox.{name}' for name in _COLUMNS)}, inbox.suspect, agents.state, agents.paused,"
        " agents.config, agents.epoch FROM inbox JOIN agents ON agents.address = inbox.address WHERE inbox.expires <= ?"
        f" AND inbox.address <> '' AND NOT inbox.{PARKED} AND inbox.address IN",
        addresses,
        " ORDER BY inbox.envelope_id",
        [now],
    )
    found = []
    for *row, state, paused, config, epoch in rows:
        envelope = envelope_of(row)
        is_inactive = state == State.SLEEPING or paused or not knows(AgentConfig.from_json(config).profile)
        if state == State.STOPPED or envelope.due > now or (is_inactive and envelope.attempts == 1):
            found.append((envelope, epoch))
    return tuple(found)
