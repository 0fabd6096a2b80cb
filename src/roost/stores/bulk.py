"""Statements for many rows. Each statement releases the interpreter lock, which costs more than most rows.

Parameters have no names, since SQLite looks each name up among all of them. The number of rows in one statement is one
of a few sizes, so that there are few statement texts and they stay prepared. Where it does no harm, the last row is
repeated to fill a size.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, TypeVar

from roost.ports import Row, Tx

T = TypeVar("T")
_SKIP = "DO NOTHING"
_FROM = " FROM batch WHERE "
"""Statements in this form are rewritten for a single row, without a table."""
NONE: Mapping[str, str] = {}
FEW = 4
"""Up to this many rows, reading them is as fast as counting them."""
SIZES = (*range(1, 17), 20, 24, 28, 32, 48, 64, 96, 128, 192, 256)
"""Close together where most batches are: two statements for one batch cost more than another prepared text."""


def columns(names: str) -> tuple[str, ...]:
    """Return the names of columns that are written as in SQL: `a, b, c`."""
    return tuple(names.split(", "))


def insert(
    tx: Tx,
    table: str,
    columns: tuple[str, ...],
    rows: Sequence[Sequence[Any]],
    ending: str = "",
    constants: Mapping[str, str] = NONE,
) -> None:
    """Insert rows; `ending` says what happens to rows that exist.

    `constants`: columns with the same value in all rows, as SQL.
    """
    constant_columns = tuple(constants.items())
    for part in padded(rows) if ending.endswith(_SKIP) else parts(rows):
        tx.write(_insertion(table, columns, constant_columns, len(part), ending), list(chain.from_iterable(part)))


def read(tx: Tx, sql: str, ids: Sequence[str], ending: str = "", first: Sequence[Any] = ()) -> list[Row]:
    """Return the rows of `sql`, which ends in `… WHERE x IN`, for these ids; `first`: its other parameters."""
    found: list[Row] = []
    for part in padded(ids):
        found += tx.read(_listed(sql, len(part), ending), [*first, *part])
    return found


def all_exist(tx: Tx, sql: str, ids: Sequence[str], ending: str = "") -> bool:
    """Return whether `SELECT count(*) … IN` finds each of these distinct ids.

    The interpreter lock is released for each row: in the usual case this fetches one row instead of many.
    """
    found: int = sum(tx.read(_listed(sql, len(part), ending), part)[0][0] for part in padded(ids))
    return found == len(ids)


def write(tx: Tx, sql: str, ids: Sequence[str], ending: str = "", first: Sequence[Any] = ()) -> list[Row]:
    """Update or delete the rows of `sql`; otherwise like `read`."""
    found: list[Row] = []
    for part in padded(ids):
        found += tx.write(_listed(sql, len(part), ending), [*first, *part])
    return found


def with_batch(tx: Tx, sql: str, columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> list[Row]:
    """Read or write with a table `batch` of these rows, with these column names and types."""
    typed_columns, execute = tuple(columns.items()), tx.read if sql.startswith("SELECT") else tx.write
    if len(rows) == 1 and _FROM in sql:
        return execute(_for_one_row(sql, typed_columns), dict(zip(columns, rows[0], strict=True)))
    found: list[Row] = []
    for part in padded(rows):
        found += execute(_with_table(sql, typed_columns, len(part)), list(chain.from_iterable(part)))
    return found


def parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split items into slices, each of one of the sizes."""
    start = 0
    while start < len(items):
        size = SIZES[bisect_right(SIZES, len(items) - start) - 1]
        yield items[start : start + size]
        start += size


def padded(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split items into as few slices as possible, each of one of the sizes; repeat the last item to fill one."""
    for start in range(0, len(items), SIZES[-1]):
        part = items[start : start + SIZES[-1]]
        missing = SIZES[bisect_left(SIZES, len(part))] - len(part)
        yield [*part, *([part[-1]] * missing)] if missing else part


@lru_cache(maxsize=512)
def _insertion(
    table: str, columns: tuple[str, ...], fixed: tuple[tuple[str, str], ...], count: int, ending: str
) -> str:
    names = [*columns, *(name for name, _ in fixed)]
    row = f"({', '.join(['?'] * len(columns) + [sql for _, sql in fixed])})"
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES {', '.join([row] * count)}{ending}"


@lru_cache(maxsize=512)
def _listed(sql: str, count: int, ending: str) -> str:
    return f"{sql} ({', '.join('?' * count)}){ending}"


@lru_cache(maxsize=256)
def _for_one_row(sql: str, columns: tuple[tuple[str, str], ...]) -> str:
    for name, kind in columns:
        sql = re.sub(rf"\bbatch\.{name}\b", f"CAST(:{name} AS {kind})", sql)
    return sql.replace(_FROM, " WHERE ")


@lru_cache(maxsize=512)
def _with_table(sql: str, columns: tuple[tuple[str, str], ...], count: int) -> str:
    row = f"({', '.join(f'CAST(? AS {kind})' for _, kind in columns)})"
    names = ", ".join(name for name, _ in columns)
    return f"WITH batch ({names}) AS (VALUES {', '.join([row] * count)}) {sql}"
