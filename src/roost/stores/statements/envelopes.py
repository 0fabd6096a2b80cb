"""Envelopes as rows of the inbox: how they are written, one or many, and how they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from roost.core.agents import AgentConfig, State
from roost.core.envelopes import Envelope, Kind
from roost.core.priority import Priority
from roost.ports import Row, Tx
from roost.stores.statements import bulk
from roost.stores.statements.resting import RESTS
from roost.stores.statements.sleep import arm_all

_COLUMNS = (
    "envelope_id", "address", "kind", "lane", "priority", "sender", "body", "created", "rank", "due", "attempts",
    "most_attempts", "retry_delay", "expires", "hops", "recorded", "ask", "root",
)  # fmt: skip
ENVELOPE = ", ".join(_COLUMNS)
_INSERT = (
    f"INSERT INTO inbox ({ENVELOPE}, seq, busy) SELECT {', '.join(f':{name}' for name in _COLUMNS)}, 0, ''"
    " FROM agents WHERE address = :address ON CONFLICT (envelope_id) DO NOTHING RETURNING attempts"
)
_MANY = tuple(name for name in _COLUMNS if name != "recorded")
_values = attrgetter(*_MANY)
_ATTEMPTS = _MANY.index("attempts")


def envelope_of(row: Row, *, claimed: bool) -> Envelope:
    (envelope_id, address, kind, lane, priority, sender, body, created, ranked, due, attempts, most, delay, expires,
     hops, recorded, ask, root) = row[:18]  # fmt: skip
    return Envelope(
        envelope_id, address, _KINDS[kind], lane, _PRIORITIES[priority], sender, body, created, ranked, due,
        max(attempts, 1) if claimed else attempts, most, delay, expires, hops, bool(recorded), ask, claimed, root,
    )  # fmt: skip


_KINDS = {str(kind): kind for kind in Kind}
_PRIORITIES = {str(priority): priority for priority in Priority}


def put(tx: Tx, envelope: Envelope) -> bool:
    """False: there is no such agent (any more)."""
    values = {name: getattr(envelope, name) for name in _COLUMNS}
    values["recorded"] = int(envelope.recorded)
    values["attempts"] = 1 if envelope.claimed else 0
    there = bool(tx.write(_INSERT, values))
    if there and envelope.expires is not None:
        watch_expiry(tx, {envelope.address: envelope.expires})
    return there


def put_all(
    tx: Tx, envelopes: Sequence[Envelope], *, recorded: bool, full: frozenset[str] = frozenset()
) -> None:  # fmt: skip
    """All of them recorded, or none; to agents that exist. What is there already stays as it is.

    `full`: those who have no room for it in memory, and so are not handed it.
    """
    constants = {"recorded": str(int(recorded)), "seq": "0", "busy": "''"}
    rows = [_values(e) if e.address not in full else _untried(e) for e in envelopes]
    bulk.insert(tx, "inbox", _MANY, rows, " ON CONFLICT (envelope_id) DO NOTHING", constants)
    expiring: dict[str, float] = {}
    for envelope in envelopes:
        if envelope.expires is not None:
            expiring[envelope.address] = min(envelope.expires, expiring.get(envelope.address, envelope.expires))
    watch_expiry(tx, expiring)


def _untried(envelope: Envelope) -> tuple[Any, ...]:
    values = _values(envelope)
    return (*values[:_ATTEMPTS], 0, *values[_ATTEMPTS + 1 :])


def watch_expiry(tx: Tx, first: Mapping[str, float]) -> None:
    """Have agents looked at when the first of what waits for them expires, whether they work or not."""
    timers = [(address, "expiry", due) for address, due in first.items()]
    arm_all(tx, timers, " WHERE timers.due > excluded.due")


def expired(
    tx: Tx, addresses: Sequence[str], now: float, knows: Callable[[str], bool]
) -> tuple[tuple[Envelope, int], ...]:  # fmt: skip
    rows = bulk.among(
        tx, f"SELECT {', '.join(f'inbox.{name}' for name in _COLUMNS)}, agents.state, agents.paused, agents.config,"
        " agents.epoch FROM inbox JOIN agents ON agents.address = inbox.address WHERE inbox.expires <= ?"
        f" AND inbox.address <> '' AND NOT inbox.{RESTS} AND inbox.address IN", addresses,
        " ORDER BY inbox.envelope_id", [now],
    )  # fmt: skip
    found = []
    for *row, state, paused, config, epoch in rows:
        envelope = envelope_of(row, claimed=False)
        waits = state == State.SLEEPING or paused or not knows(AgentConfig.from_json(config).profile)
        if state == State.STOPPED or envelope.due > now or (waits and not envelope.attempts):
            found.append((envelope, epoch))
    return tuple(found)
