"""The SQLite store that is copied to another database: locked, checked, at the current schema, and not changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from roost.errors import Unavailable
from roost.ports import Row
from roost.stores import migrations
from roost.stores.copies import backups
from roost.stores.sqlite import SqliteConnection

_OTHER_ROWS = {
    "meta": "WHERE name NOT IN ('cluster', 'owner') AND name NOT LIKE 'owner:%'"
    " AND name NOT LIKE 'heartbeat of %' AND name NOT LIKE 'room of %'"
}
"""Conditions of the rows that belong to the store. The rest belongs to a process or a cluster.

The row `running` is kept: if the last process crashed, the next one has to know, on whichever database it starts.
"""


class SourceTables:
    """Tables of a store, read in one transaction."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def tables(self) -> list[str]:
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        return sorted(name for (name,) in self._database.execute(query))

    def count(self, table: str) -> int:
        [number] = self._database.execute(f"SELECT count(*) FROM {_quoted(table)} {_condition(table)}").fetchone()
        return int(number)

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[Row]:
        listed = ", ".join(map(_quoted, columns))
        return iter(self._database.execute(f"SELECT {listed} FROM {_quoted(table)} {_condition(table)}"))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _condition(table: str) -> str:
    return _OTHER_ROWS.get(table, "")


@contextmanager
def opened(store: Path) -> Iterator[SourceTables]:
    """Yield the tables of a store at the current schema; no other process can use the store meanwhile.

    A store of an older version is copied next to it, and the copy is migrated and then removed. Raise Unavailable if
    the file is missing, damaged, in use, of a newer version or of another program.
    """
    if not store.is_file():
        raise Unavailable(f"there is no file {str(store)!r}: name the store to copy")
    try:
        with backups.owned(store), _at_current_schema(store) as path, closing(_connect(path)) as database:
            _check(database, store)
            database.execute("BEGIN")
            yield SourceTables(database)
    except sqlite3.Error as error:
        raise _unreadable(store, str(error)) from error


@contextmanager
def _at_current_schema(store: Path) -> Iterator[Path]:
    with closing(_connect(store)) as database:
        backups.refuse_foreign(database, store)
    if _version(store) == len(migrations.steps()):
        yield store
        return
    copy = store.with_name(f"{store.name}.migrated")
    _remove(copy)  # left by an interrupted copy
    try:
        backups.back_up(store, copy)
        with closing(_migrating(copy)) as connection:
            migrations.migrate(connection, dialect="sqlite")
        yield copy
    finally:
        _remove(copy)


def _version(store: Path) -> int:
    with closing(_migrating(store)) as connection:
        migrations.refuse_newer(connection, str(store))
        return migrations.version(connection)


def _migrating(path: Path) -> SqliteConnection:
    return SqliteConnection(path, lambda: 0.0, read_only=False)


def _connect(path: Path) -> sqlite3.Connection:
    """Connect for reading. It may write, because otherwise it would leave the files of its journal behind."""
    database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None)
    database.execute("PRAGMA busy_timeout = 5000")
    database.execute("PRAGMA query_only = ON")
    return database


def _check(database: sqlite3.Connection, store: Path) -> None:
    [answer] = database.execute("PRAGMA quick_check(1)").fetchone()
    if answer != "ok":
        raise _unreadable(store, answer)


def _unreadable(store: Path, reason: str) -> Unavailable:
    text = " ".join(reason.split())
    return Unavailable(
        f"{str(store)!r} cannot be read ({text}): check the disk; if the file is damaged, restore it from a backup"
    )


def _remove(copy: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        copy.with_name(copy.name + ending).unlink(missing_ok=True)
