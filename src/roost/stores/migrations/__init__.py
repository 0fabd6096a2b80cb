"""The schema as a sequence of steps. Forward only; a store is refused by programs that are too old for it.

A committed step is never edited: a store that has already applied it would lack the edit. A step with which older
programs still work says so in its first line: see `compatibility`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib.resources import files
from typing import NamedTuple, Protocol

from roost.errors import Unavailable
from roost.ports import Tx
from roost.stores.migrations import compatibility, repair


class Migrating(Tx, Protocol):
    """A connection that can change the schema."""

    def begin(self) -> None: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def alone(self) -> None:
        """Exclude other programs from changing the schema until the commit."""
        ...

    def has_table(self, name: str) -> bool: ...


class Schema(NamedTuple):
    """Version of the schema of a store."""

    version: int = 0
    oldest: int = 0
    """Oldest version whose program works on the store."""


def names() -> list[str]:
    """Return the file name of each step, in order."""
    return sorted(f.name for f in files(__package__).iterdir() if f.name.endswith(".sql"))


def steps() -> list[str]:
    """Return the text of each step, in order; step n leads to version n."""
    return [(files(__package__) / name).read_text() for name in names()]


def known() -> int:
    """Return the version of the schema that this program knows."""
    return len(names())


def version(connection: Migrating) -> int:
    """Return the version of the schema; 0 if there is none."""
    return schema(connection).version


def schema(connection: Migrating) -> Schema:
    """Return the version of the schema, and of the oldest program that works on it."""
    if not connection.has_table("meta"):
        return Schema()
    found: dict[str, int] = {}
    for name, value in connection.read("SELECT name, value FROM meta WHERE name IN ('schema', 'oldest')"):
        if not str(value).isdigit():
            raise Unavailable(f"the database is damaged, its {name} is {value!r:.20}: restore it from a backup")
        found[name] = int(value)
    number = found.get("schema", 0)
    return Schema(number, found.get("oldest", number))  # steps that wrote no `oldest` worked with no older program


def generation(connection: Migrating) -> str:
    """Return which restored copy this is; empty for a store that was never restored."""
    row = connection.one("SELECT value FROM meta WHERE name = 'generation'")
    return str(row[0]) if row else ""


def refuse_newer(connection: Migrating, where: str) -> None:
    """Raise Unavailable if this program does not know the schema of a store."""
    _refuse(connection, where, lambda found: found.version)


def refuse_incompatible(connection: Migrating, where: str) -> None:
    """Raise Unavailable if this program is too old for a store. A newer schema may be one that it can use."""
    _refuse(connection, where, lambda found: found.oldest)


def _refuse(connection: Migrating, where: str, needed: Callable[[Schema], int]) -> None:
    found, known_here = schema(connection), known()
    connection.rollback()
    if needed(found) > known_here:
        raise Unavailable(
            f"{where} was written by a newer Roost (schema {found.version}, this one knows {known_here}): "
            "install that version again; nothing was changed"
        )


def migrate(
    connection: Migrating,
    *,
    dialect: str,
    to: int | None = None,
    within: bool = False,
    applied: Callable[[str], object] = bool,
) -> None:
    """Migrate to the newest version, or to the given one; call `applied` with the name of each step after it.

    Each step is one transaction; with `within`, all steps are part of the transaction of the caller. Raise Unavailable
    while nodes are alive that do not work with one of the steps.
    """
    transaction = nullcontext if within else _transaction
    with transaction(connection):
        found = version(connection)
        if repair.FIRST <= found <= repair.LAST:
            repair.repair(connection, dialect)
    pending = list(enumerate(steps()[:to], start=1))[found:]
    needed = max((compatibility.declared(text, number) for number, text in pending), default=0)
    for number, text in pending:
        with transaction(connection):
            if (reached := version(connection)) < number:
                compatibility.refuse_older_nodes(connection, reached, needed)
                _apply(connection, number, text, dialect)
        applied(names()[number - 1])


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
    before = schema(connection).oldest
    for statement in _statements(text, dialect):
        connection.write(statement)
    oldest = max(before, compatibility.declared(text, number))
    for name, value in (("schema", number), ("oldest", oldest)):
        connection.write(
            "INSERT INTO meta (name, value) VALUES (:name, :v) ON CONFLICT (name) DO UPDATE SET value = :v",
            {"name": name, "v": str(value)},
        )


def _statements(text: str, dialect: str) -> list[str]:
    """Split at semicolons that end a line. A line marked `-- sqlite` or `-- postgres` is for that one only."""
    other = "-- postgres" if dialect == "sqlite" else "-- sqlite"
    lines = [line for line in text.splitlines() if not line.rstrip().endswith(other)]
    plain = "\n".join(line.split("--")[0].rstrip() for line in lines)
    return [statement.strip() for statement in plain.split(";\n") if statement.strip(" ;\n")]
