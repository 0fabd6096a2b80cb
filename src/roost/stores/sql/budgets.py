"""Counts of origins that have used a good part of a budget: runs, messages, meetings and tokens, in this order."""

from __future__ import annotations

from collections.abc import Sequence

from roost.ports import Tx

_COUNTS = ("runs", "messages", "meetings", "tokens")
_HIGHEST = ", ".join(
    f"{name} = CASE WHEN excluded.{name} > budgets.{name} THEN excluded.{name} ELSE budgets.{name} END"
    for name in _COUNTS
)


def save(tx: Tx, root: str, counts: Sequence[int], now: float) -> None:
    """Store the counts of an origin, each unless a higher one is stored."""
    tx.write(
        f"INSERT INTO budgets (root, {', '.join(_COUNTS)}, touched) VALUES (:root, :runs, :messages, :meetings,"
        f" :tokens, :now) ON CONFLICT (root) DO UPDATE SET {_HIGHEST}, touched = excluded.touched",
        {"root": root, "now": now, **dict(zip(_COUNTS, counts, strict=True))},
    )


def load_all(tx: Tx) -> list[tuple[str, tuple[int, ...]]]:
    """Return all stored origins with their counts."""
    rows = tx.read(f"SELECT root, {', '.join(_COUNTS)} FROM budgets")
    return [(row[0], tuple(row[1:])) for row in rows]
