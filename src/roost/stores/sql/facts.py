"""Facts of all nodes of a cluster, in one order for all followers.

A fact is written in the transaction that it reports, and its tick is the id of that transaction. Transactions commit
in any order, so a fact is read when all transactions with smaller ids have ended: no fact can appear before it later.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from roost.core.monitoring.facts import FactRow, Name, owner_of
from roost.ports import Row, Tx
from roost.stores import bulk

_NEW = bulk.columns("name, at, user_id, about, data, root")
_READ = "tick, number, name, at, user_id, about, data, root"
_HORIZON = "SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT)"
_REMOVED = "facts_removed"
_NAMES = {str(name): name for name in Name}


class Position(NamedTuple):
    """Place of a fact in the order of all facts."""

    tick: int
    number: int


START = Position(0, 0)
StoredFact = tuple[Position, FactRow]


@dataclass(frozen=True, slots=True)
class NewFacts:
    """Facts that were read. Those before `horizon` are complete; there may be more of them if `more`."""

    facts: tuple[StoredFact, ...]
    end: Position
    """Position of the last row that was read."""
    horizon: int
    more: bool


@dataclass(frozen=True, slots=True)
class KeptFacts:
    """The newest facts, and the position after which none is missing."""

    facts: tuple[StoredFact, ...]
    floor: Position
    horizon: int


def add(tx: Tx, rows: Sequence[FactRow]) -> None:
    """Write facts in the transaction that they report."""
    for row in rows:
        name, when, _, about, data, root = row
        tx.later("facts", _NEW, (str(name), when, owner_of(row), about, json.dumps(dict(data), default=str), root))


def after(tx: Tx, last: Position, most: int) -> NewFacts:
    """Return up to `most` facts after a position, in order."""
    horizon = _horizon(tx)
    rows = tx.read(
        f"SELECT {_READ} FROM facts WHERE (tick, number) > (:tick, :number) AND tick < :horizon"
        " ORDER BY tick, number LIMIT :most",
        {"tick": last.tick, "number": last.number, "horizon": horizon, "most": most},
    )
    end = Position(*rows[-1][:2]) if rows else last
    return NewFacts(_facts(rows), end, horizon, len(rows) == most)


def newest(tx: Tx, most: int) -> KeptFacts:
    """Return the newest facts, in order."""
    horizon = _horizon(tx)
    rows = tx.read(
        f"SELECT {_READ} FROM facts WHERE tick < :horizon ORDER BY tick DESC, number DESC LIMIT :most",
        {"horizon": horizon, "most": most + 1},
    )
    floor = Position(*rows[most][:2]) if len(rows) > most else _removed(tx)  # read last: they may be trimmed meanwhile
    return KeptFacts(_facts(rows[:most][::-1]), floor, horizon)


def trim(tx: Tx, kept: int, before: float) -> int:
    """Delete all facts but the newest, and those before a time; return how many."""
    row = tx.one(
        "SELECT tick, number FROM (SELECT tick, number FROM facts ORDER BY tick DESC, number DESC LIMIT 1 OFFSET :kept)"
        " too_many UNION ALL SELECT tick, number FROM (SELECT tick, number FROM facts WHERE at < :before"
        " ORDER BY tick DESC, number DESC LIMIT 1) too_old ORDER BY tick DESC, number DESC LIMIT 1",
        {"kept": kept, "before": before},
    )
    if row is None:
        return 0
    ids = {"tick": row[0], "number": row[1]}
    gone = tx.write("DELETE FROM facts WHERE (tick, number) <= (:tick, :number) RETURNING number", ids)
    tx.write(
        "INSERT INTO meta (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = :value",
        {"name": _REMOVED, "value": f"{row[0]}.{row[1]}"},
    )
    return len(gone)


def _horizon(tx: Tx) -> int:
    """Return the id of the oldest transaction that may still commit. With a single writer there is no other one."""
    if not tx.for_update:
        return 1
    [(horizon,)] = tx.read(_HORIZON)
    return int(horizon)


def _removed(tx: Tx) -> Position:
    row = tx.one("SELECT value FROM meta WHERE name = :name", {"name": _REMOVED})
    return START if row is None else Position(*map(int, str(row[0]).split(".")))


def _facts(rows: Sequence[Row]) -> tuple[StoredFact, ...]:
    """Return facts; those of a newer version with an unknown name are left out."""
    return tuple(
        (Position(tick, number), (_NAMES[name], at, user_id, about, json.loads(data), root))
        for tick, number, name, at, user_id, about, data, root in rows
        if name in _NAMES
    )
