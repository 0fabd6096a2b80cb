"""Context that brains keep: one immutable row a turn, and one a value. Deleted with its talk or agent."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable

from roost.core.brain_data.brain_context import ContextEntry, ContextKey, ContextWrite, Scope
from roost.ports import Tx

log = logging.getLogger("roost.diary")


def read(tx: Tx, place: ContextKey, app: str, limit: int) -> tuple[list[ContextEntry], dict[Scope, dict[str, str]]]:
    """Return the newest entries, in the order of their turns, and all values."""
    rows = tx.read(
        "SELECT run_id, content, seqs FROM diary WHERE owner = :owner AND lane = :lane"
        " ORDER BY run_id DESC LIMIT :limit",
        {"owner": place.owner, "lane": place.lane, "limit": limit},
    )
    entries = [entry for row in rows if (entry := _entry(*row)) is not None]
    ids: dict[str, str] = {}
    for scope in Scope:
        ids[scope], ids[f"{scope}_lane"] = place.of(scope, app)
    values: dict[Scope, dict[str, str]] = {scope: {} for scope in Scope}
    query = "SELECT '{0}', name, value FROM diary_values WHERE owner = :{0} AND lane = :{0}_lane"
    for scope, name, value in tx.read(" UNION ALL ".join(query.format(scope) for scope in Scope), ids):
        values[Scope(scope)][name] = value
    return entries[::-1], values


def _entry(run_id: str, content: str, seqs: str) -> ContextEntry | None:
    """Parse an entry; return None for one that cannot be read: a brain can do without the notes of one turn."""
    try:
        return ContextEntry(run_id, content, tuple(json.loads(seqs)))
    except (ValueError, TypeError):
        log.warning("skipping unreadable brain context of run %s", run_id, extra={"run": run_id})
        return None


def write(tx: Tx, written: Iterable[ContextWrite]) -> None:
    """Write context in the transaction that ends the turns."""
    values: dict[tuple[str, str, str], str] = {}
    for one in written:
        if one.entry is not None:
            place, entry = one.place, one.entry
            row = (place.owner, place.lane, entry.run_id, entry.content, json.dumps(entry.seqs))
            tx.later("diary", _ENTRY, row, " ON CONFLICT (owner, lane, run_id) DO NOTHING")
        for scope, named in one.values.items():
            owner, lane = one.place.of(scope, one.app)
            values |= {(owner, lane, name): value for name, value in named.items()}
    for (owner, lane, name), value in sorted(values.items()):  # in a fixed order: no deadlock between writers
        tx.write(
            "INSERT INTO diary_values (owner, lane, name, value) VALUES (:owner, :lane, :name, :value)"
            " ON CONFLICT (owner, lane, name) DO UPDATE SET value = excluded.value",
            {"owner": owner, "lane": lane, "name": name, "value": value},
        )


_ENTRY = ("owner", "lane", "run_id", "content", "seqs")


def forget(tx: Tx, owner: str) -> None:
    """Delete all context of a talk or an agent."""
    for table in ("diary", "diary_values", "artifacts"):
        tx.write(f"DELETE FROM {table} WHERE owner = :owner", {"owner": owner})
