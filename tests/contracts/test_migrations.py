"""The steps lead to the schema, from every earlier version; a newer one is left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from roost.errors import Unavailable
from roost.hosts.threads import ThreadHost
from roost.ports import Tx
from roost.stores import migrations
from roost.stores.engine import Database
from roost.stores.sqlite import SqliteConnection
from roost.wiring import database
from tests.contracts.conftest import Driven


def now() -> float:
    return 0.0


def schema(path: Path) -> list[tuple[Any, ...]]:
    connection = SqliteConnection(path, now, read_only=True)
    try:
        return [tuple(row) for row in connection.read("SELECT type, name, sql FROM sqlite_master ORDER BY type, name")]
    finally:
        connection.close()


@pytest.mark.parametrize("start", range(len(migrations.steps())))
def test_every_earlier_version_is_brought_to_the_newest(tmp_path: Path, start: int) -> None:
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    old.touch()
    connection = SqliteConnection(old, now, read_only=False)
    migrations.migrate(connection, dialect="sqlite", to=start)
    connection.close()
    for path in (old, new):
        database(f"sqlite:///{path}", now).release()
    assert schema(old) == schema(new)


def test_the_version_is_the_number_of_steps(store: Driven) -> None:
    def version(tx: Tx) -> str:
        row = tx.one("SELECT value FROM meta WHERE name = 'schema'")
        assert row is not None
        return str(row[0])

    assert store.read(version) == str(len(migrations.steps()))


def test_migrating_twice_changes_nothing(url: str, raw_store: Database) -> None:
    raw_store.release()
    database(url, ThreadHost().clock.now).release()
    database(url, ThreadHost().clock.now).release()
    assert len(migrations.steps()) >= 1


def test_a_newer_store_is_refused_and_left_as_it_was(url: str, tmp_path: Path) -> None:
    made = database(url, now)
    connection = made.connect(read_only=False)
    connection.begin()
    connection.write("UPDATE meta SET value = '999' WHERE name = 'schema'")
    connection.commit()
    connection.close()
    made.release()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(Unavailable, match=r"newer Roost \(schema 999"):
        database(url, now)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
