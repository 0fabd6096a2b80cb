"""The schema as a sequence of steps. Forward only; a store of a newer version is refused.

A committed step is never edited: a store that has already applied it would lack the edit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Protocol

from roost.errors import Unavailable
from roost.ports import Tx
from roost.stores.migrations import repair


class Migrating(Tx, Protocol):
    """A connection that can change the schema."""

    def begin(self) -> None: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def alone(self) -> None:
        """Exclude other programs from changing the schema until the commit."""
        ...

    def has_table(self, name: str) -> bool: ...


def steps() -> list[str]:
    """Return the text of each step, in order; step n leads to version n."""
    found = sorted(f.name for f in files(__package__).iterdir() if f.name.endswith(".sql"))
    return [(files(__package__) / name).read_text() for name in found]


def version(connection: Migrating) -> int:
    """Return the version of the schema; 0 if there is none."""
    if not connection.has_table("meta"):
        return 0
    row = connection.one("SELECT value FROM meta WHERE name = 'schema'")
    if row is not None and not str(row[0]).isdigit():
        raise Unavailable(f"the database is damaged, its schema is {row[0]!r:.20}: restore it from a backup")
    return int(row[0]) if row else 0


def generation(connection: Migrating) -> str:
    """Return which restored copy this is; empty for a store that was never restored."""
    row = connection.one("SELECT value FROM meta WHERE name = 'generation'")
    return str(row[0]) if row else ""


def refuse_newer(connection: Migrating, where: str) -> None:
    found, known = version(connection), len(steps())
    connection.rollback()
    if found > known:
        raise Unavailable(
            f"{where} was written by a newer Roost (schema {found}, this one knows {known}): "
            "install that version again; nothing was changed"
        )


def migrate(connection: Migrating, *, dialect: str, to: int | None = None) -> None:
    """Migrate to the newest version, or to the given one; each step is one transaction."""
    with _transaction(connection):
        found = version(connection)
        if repair.FIRST <= found <= repair.LAST:
            repair.repair(connection, dialect)
    for number, text in enumerate(steps()[:to], start=1):
        if number <= found:
            continue
        with _transaction(connection):
            if version(connection) < number:
                _apply(connection, number, text, dialect)


@contextmanager
def _transaction(connection: Migrating) -> Iterator[None]:
    connection.begin()
    try:
        connection.alone()
        yield
        connection.commit()
    except BaseException:
        connection.rollback()
        raise


def _apply(connection: Migrating, number: int, text: str, dialect: str) -> None:
    for statement in _statements(text, dialect):
        connection.write(statement)
    connection.write(
        "INSERT INTO meta (name, value) VALUES ('schema', :v) ON CONFLICT (name) DO UPDATE SET value = :v",
        {"v": str(number)},
    )


def _statements(text: str, dialect: str) -> list[str]:
    """Split at semicolons that end a line. A line marked `-- sqlite` or `-- postgres` is for that one only."""
    other = "-- postgres" if dialect == "sqlite" else "-- sqlite"
    lines = [line for line in text.splitlines() if not line.rstrip().endswith(other)]
    plain = "\n".join(line.split("--")[0].rstrip() for line in lines)
    return [statement.strip() for statement in plain.split(";\n") if statement.strip(" ;\n")]
