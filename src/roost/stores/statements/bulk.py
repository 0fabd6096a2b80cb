"""Many rows in few statements: each statement hands the interpreter over, which costs more than most rows.

Their parameters have no names, since SQLite looks each one up among all of them. The number of rows in one statement is
one of a few, so that the texts stay few and prepared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from roost.ports import Row, Tx

T = TypeVar("T")
SIZES = (256, 64, 16, 4, 1)


def insert(tx: Tx, table: str, columns: tuple[str, ...], rows: Sequence[Sequence[Any]], ending: str = "") -> None:
    for part in _parts(rows):
        tx.write(_insertion(table, columns, len(part), ending), [value for row in part for value in row])


def among(tx: Tx, sql: str, ids: Sequence[str], ending: str = "") -> list[Row]:
    """What `sql` gives whose last word is completed by these ids: `… WHERE x IN`."""
    found: list[Row] = []
    for part in _parts(ids):
        found += tx.read(_listed(sql, len(part), ending), part)
    return found


def remove(tx: Tx, sql: str, ids: Sequence[str], ending: str) -> list[Row]:
    found: list[Row] = []
    for part in _parts(ids):
        found += tx.write(_listed(sql, len(part), ending), part)
    return found


def _parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    start = 0
    while start < len(items):
        size = next(size for size in SIZES if size <= len(items) - start)
        yield items[start : start + size]
        start += size


@lru_cache(maxsize=256)
def _insertion(table: str, columns: tuple[str, ...], count: int, ending: str) -> str:
    row = f"({', '.join('?' * len(columns))})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([row] * count)}{ending}"


@lru_cache(maxsize=256)
def _listed(sql: str, count: int, ending: str) -> str:
    return f"{sql} ({', '.join('?' * count)}){ending}"
