"""Many rows in few statements: each statement hands the interpreter over, which costs more than most rows.

Their parameters have no names, since SQLite looks each one up among all of them. The number of rows in one statement is
one of a few, so that the texts stay few and prepared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, TypeVar

from roost.ports import Row, Tx

T = TypeVar("T")
NONE: Mapping[str, str] = {}
SIZES = (256, 64, 16, 4, 1)


def insert(
    tx: Tx, table: str, columns: tuple[str, ...], rows: Sequence[Sequence[Any]], ending: str = "",
    constants: Mapping[str, str] = NONE,
) -> None:  # fmt: skip
    """`constants`: columns that are the same in all rows, with what they are in SQL."""
    fixed = tuple(constants.items())
    for part in _parts(rows):
        tx.write(_insertion(table, columns, fixed, len(part), ending), list(chain.from_iterable(part)))


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
def _insertion(
    table: str, columns: tuple[str, ...], fixed: tuple[tuple[str, str], ...], count: int, ending: str
) -> str:  # fmt: skip
    names = [*columns, *(name for name, _ in fixed)]
    row = f"({', '.join(['?'] * len(columns) + [sql for _, sql in fixed])})"
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES {', '.join([row] * count)}{ending}"


@lru_cache(maxsize=256)
def _listed(sql: str, count: int, ending: str) -> str:
    return f"{sql} ({', '.join('?' * count)}){ending}"
