"""The PostgreSQL database that a store is copied to: empty before, complete afterwards, and nothing in between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import sql
from psycopg.postgres import types as builtins

from roost.core.values import checks
from roost.errors import Unavailable
from roost.ports import Row
from roost.stores import migrations
from roost.stores.postgres import Postgres
from roost.stores.postgres_connection import DriverConnection

_FOUND = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = ANY (current_schemas(false)) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
  AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
UNION ALL
SELECT n.nspname, p.proname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = ANY (current_schemas(false)) AND p.proname = 'roost_now'
ORDER BY 1, 2 LIMIT 1
"""
"""The first thing that would be in the way; extensions may have tables of their own."""
_COLUMNS = """
SELECT c.relname, a.attname, a.atttypid::int FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
  AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
ORDER BY c.relname, a.attnum
"""
_TYPES: dict[int, type] = {
    builtins["text"].oid: str,
    builtins["int8"].oid: int,
    builtins["int4"].oid: int,
    builtins["float8"].oid: float,
    builtins["bytea"].oid: bytes,
}
"""Types of values by types of columns; SQLite keeps any value in any column."""
_SMALL = builtins["int4"].oid


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the target, with the names and types of its columns."""

    name: str
    columns: tuple[str, ...]
    types: tuple[int, ...]

    def check(self, row: Row) -> Row:
        """Return a row whose values fit. Raise Unavailable if one does not."""
        for value, column, kind in zip(row, self.columns, self.types, strict=True):
            if not _fits(value, kind):
                raise Unavailable(
                    f"the table {self.name!r} has a value in the column {column!r} that PostgreSQL cannot keep there"
                    f" ({checks.shown(value)}): correct it in the source; nothing was copied"
                )
        return row


def _fits(value: object, kind: int) -> bool:
    if kind == _SMALL and isinstance(value, int):
        return -(1 << 31) <= value < 1 << 31
    return value is None or isinstance(value, _TYPES[kind])


class CopyTarget(Postgres):
    """An empty database, locked as if Roost was running on it. Unavailable is raised if it is not empty."""

    @property
    def name(self) -> str:
        """Its server and database, without secrets."""
        return self._where

    def _migrate(self) -> None:
        """Check what a copy needs; the copy creates the tables in its own transaction."""
        db = self._owner.driver
        [encoding] = _one(db, "SHOW server_encoding")
        if encoding != "UTF8":
            raise self._unavailable(f"{{where}} has the encoding {encoding}: create one with ENCODING 'UTF8'")
        if (found := db.execute(_FOUND).fetchone()) is not None:
            raise self._unavailable(
                f"{{where}} is not empty, it has {'.'.join(found)!r}: name a new database; nothing was changed"
            )
        [user, may_create] = _one(db, "SELECT current_user, has_schema_privilege(current_schema(), 'CREATE')")
        if not may_create:
            raise self._unavailable(
                f"{{where}} does not let {user!r} create tables: make this user its owner, or grant CREATE on a schema"
            )

    @contextmanager
    def filled(self) -> Iterator[Filling]:
        """Yield the new tables. They are committed at the end; after an error there are none."""
        self._owner.begin()
        try:
            self._owner.write("SET LOCAL idle_in_transaction_session_timeout = 0")
            self._owner.alone()
            migrations.migrate(self._owner, dialect="postgres", within=True)
            self._owner.write("DELETE FROM meta")  # the source has the same version
            yield Filling(self._owner.driver)
        except BaseException as error:
            self._owner.rollback()
            if isinstance(error, psycopg.Error):
                raise self._refused(error) from error
            raise
        self._commit()

    def _commit(self) -> None:
        try:
            self._owner.commit()
        except psycopg.Error as error:
            problem = self._refused(error)
            raise Unavailable(f"{problem}. If the database is not empty then, the copy is complete") from error

    def _refused(self, error: psycopg.Error) -> Exception:
        if (known := self.translate(error)) is not None:
            return known
        reason = ", ".join(filter(None, (error.diag.message_primary or str(error), error.diag.context)))
        return self._unavailable(
            f"{{where}} refuses a row ({' '.join(reason.split())}): correct it in the source; nothing was copied"
        )


class Filling:
    """Tables of the target while they are filled."""

    def __init__(self, db: DriverConnection) -> None:
        self._db = db

    def tables(self) -> list[Table]:
        """Return the tables. None has foreign keys, so that they can be filled in any order."""
        columns: dict[str, list[tuple[str, int]]] = {}
        for table, column, kind in self._db.execute(_COLUMNS).fetchall():
            columns.setdefault(table, []).append((column, kind))
        return [
            Table(name, tuple(one for one, _ in found), tuple(kind for _, kind in found))
            for name, found in columns.items()
        ]

    def write(self, table: Table, rows: Iterator[Row]) -> None:
        statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)")
        with self._db.cursor() as cursor, cursor.copy(statement.format(*_names(table))) as copy:
            copy.set_types(table.types)
            for row in rows:
                copy.write_row(table.check(row))

    def read(self, table: Table) -> Iterator[Row]:
        statement = sql.SQL("COPY (SELECT {1} FROM {0}) TO STDOUT (FORMAT BINARY)")
        with self._db.cursor() as cursor, cursor.copy(statement.format(*_names(table))) as copy:
            copy.set_types(table.types)
            yield from copy.rows()

    def analyze(self, table: Table) -> None:
        """Collect the statistics that plans of queries need."""
        self._db.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(table.name)))


def _names(table: Table) -> tuple[sql.Composable, sql.Composable]:
    return sql.Identifier(table.name), sql.SQL(", ").join(map(sql.Identifier, table.columns))


def _one(db: DriverConnection, query: str) -> Row:
    row = db.execute(query.encode()).fetchone()
    assert row is not None
    return row
