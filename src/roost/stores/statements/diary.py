"""Diaries of brains: one row a turn, never rewritten, and one a value."""

from __future__ import annotations

import json
from collections.abc import Iterable

from roost.core.diary import Entry, Place, Scope, Written
from roost.ports import Tx


def read(tx: Tx, place: Place, app: str, limit: int) -> tuple[list[Entry], dict[Scope, dict[str, str]]]:
    """The newest entries, in order, and all values."""
    rows = tx.read(
        "SELECT run_id, content, seqs FROM diary WHERE owner = :owner AND lane = :lane"
        " ORDER BY run_id DESC LIMIT :limit",
        {"owner": place.owner, "lane": place.lane, "limit": limit},
    )
    entries = [Entry(run_id, content, tuple(json.loads(seqs))) for run_id, content, seqs in rows]
    ids: dict[str, str] = {}
    for scope in Scope:
        ids[scope], ids[f"{scope}_lane"] = place.of(scope, app)
    values: dict[Scope, dict[str, str]] = {scope: {} for scope in Scope}
    one = "SELECT '{0}', name, value FROM diary_values WHERE owner = :{0} AND lane = :{0}_lane"
    for scope, name, value in tx.read(" UNION ALL ".join(one.format(scope) for scope in Scope), ids):
        values[Scope(scope)][name] = value
    return entries[::-1], values


def write(tx: Tx, written: Iterable[Written]) -> None:
    """Together with the end of the turns that it is of."""
    values: dict[tuple[str, str, str], str] = {}
    for one in written:
        if one.entry is not None:
            place, entry = one.place, one.entry
            row = (place.owner, place.lane, entry.run_id, entry.content, json.dumps(entry.seqs))
            tx.later("diary", _ENTRY, row, " ON CONFLICT (owner, lane, run_id) DO NOTHING")
        for scope, named in one.values.items():
            owner, lane = one.place.of(scope, one.app)
            values |= {(owner, lane, name): value for name, value in named.items()}
    for (owner, lane, name), value in sorted(values.items()):  # in one order: no two writers wait for each other
        tx.write(
            "INSERT INTO diary_values (owner, lane, name, value) VALUES (:owner, :lane, :name, :value)"
            " ON CONFLICT (owner, lane, name) DO UPDATE SET value = excluded.value",
            {"owner": owner, "lane": lane, "name": name, "value": value},
        )


_ENTRY = ("owner", "lane", "run_id", "content", "seqs")


def forget(tx: Tx, owner: str) -> None:
    """All of a talk's, or an agent's."""
    for table in ("diary", "diary_values"):
        tx.write(f"DELETE FROM {table} WHERE owner = :owner", {"owner": owner})
