"""Envelopes as rows of the inbox: how they are written, one or many, and how they are read."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from roost.core.envelopes import Envelope, Kind
from roost.core.priority import Priority
from roost.ports import Row, Tx
from roost.stores.statements import bulk

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
    return bool(tx.write(_INSERT, values))


def put_all(tx: Tx, envelopes: Sequence[Envelope], *, recorded: bool) -> None:
    """All of them recorded, or none; to agents that exist. What is there already stays as it is."""
    constants = {"recorded": str(int(recorded)), "seq": "0", "busy": "''"}
    rows = [_values(envelope) for envelope in envelopes]
    bulk.insert(tx, "inbox", _MANY, rows, " ON CONFLICT (envelope_id) DO NOTHING", constants)
