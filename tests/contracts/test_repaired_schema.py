"""Steps are immutable; a store made before step 2 was edited is brought to the same schema, with its rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import roost
from roost.stores import migrations
from roost.stores.migrations import repair
from roost.stores.postgres_connection import PostgresConnection
from roost.stores.sqlite import SqliteConnection
from roost.wiring import database
from tests.conftest import QUICK, eventually
from tests.servers import fresh_database

HERE = Path(__file__).parent
HASHES = {line.split()[1]: line.split()[0] for line in (HERE / "migrations.sha256").read_text().splitlines()}
Connection = SqliteConnection | PostgresConnection


def now() -> float:
    return 0.0


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database without tables."""
    if request.param == "sqlite":
        (tmp_path / "old.db").touch()
        yield f"sqlite:///{tmp_path / 'old.db'}"
    else:
        with fresh_database(request.getfixturevalue("postgres")) as url:
            yield url


def connect(url: str) -> tuple[Connection, str]:
    if url.startswith("sqlite:"):
        return SqliteConnection(Path(url.removeprefix("sqlite:///")), now, read_only=False), "sqlite"
    return PostgresConnection(url, read_only=False), "postgres"


def make_old(url: str, monkeypatch: pytest.MonkeyPatch, *, to: int, edits: int) -> None:
    """Make a store of version `to` as it was when step 2 had been edited so often; an agent subscribes in it."""
    first, second, *rest = migrations.steps()
    old = (HERE / "first_0002_agents.sql").read_text()
    assert old != second
    connection, dialect = connect(url)
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "steps", lambda: [first, old, *rest])
        patch.setattr(repair, "REPAIRS", repair.REPAIRS[:edits])
        migrations.migrate(connection, dialect=dialect, to=2)
        connection.begin()
        if edits:
            repair.repair(connection, dialect)
        columns = {"user_id": "ann", "address": "ann/d", "pattern": "alerts.*", "awaited": 0, "fields": "{}"}
        if edits:
            columns["head"] = "alerts."
        names = ", ".join(columns)
        connection.write(f"INSERT INTO subscriptions ({names}) VALUES (:{', :'.join(columns)})", columns)
        connection.commit()
        patch.setattr(repair, "FIRST", 99)
        migrations.migrate(connection, dialect=dialect, to=to)
    connection.close()


def shape(url: str) -> tuple[list[Any], list[Any]]:
    """All columns and all indexes."""
    connection, dialect = connect(url)
    try:
        if dialect == "sqlite":
            tables = [row[0] for row in connection.read("SELECT name FROM sqlite_master WHERE type = 'table'")]
            columns: list[Any] = [
                (t, *row) for t in tables for row in connection.read(f"SELECT name, type FROM pragma_table_info('{t}')")
            ]
            indexes = connection.read("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql <> ''")
        else:
            columns = connection.read(
                "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns"
                " WHERE table_schema = 'public'"
            )
            indexes = connection.read("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'")
        return sorted(columns), sorted(indexes)
    finally:
        connection.close()


@pytest.mark.parametrize("edits", range(len(repair.REPAIRS) + 1))
@pytest.mark.parametrize("to", [2, 8])
def test_a_store_from_before_an_edit_of_a_step_gets_the_schema_of_today(
    empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: int, edits: int
) -> None:
    make_old(empty, monkeypatch, to=to, edits=edits)
    database(empty, now).release()
    fresh = f"sqlite:///{tmp_path / 'fresh.db'}"
    if empty.startswith("sqlite:"):
        database(fresh, now).release()
        assert shape(empty) == shape(fresh)
    connection, _ = connect(empty)
    assert connection.read("SELECT pattern, head FROM subscriptions") == [("alerts.*", "alerts.")]
    connection.close()


@pytest.mark.postgres
def test_a_repaired_server_has_the_columns_and_indexes_of_a_new_one(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fresh_database(postgres) as old, fresh_database(postgres) as fresh:
        make_old(old, monkeypatch, to=8, edits=0)
        for url in (old, fresh):
            database(url, now).release()
        assert shape(old) == shape(fresh)


def test_an_agent_works_in_a_repaired_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "old.db"
    path.touch()
    make_old(f"sqlite:///{path}", monkeypatch, to=2, edits=0)

    async def listener(turn: roost.Turn) -> Any:
        await turn.remember(turn.text)
        yield "heard"

    with roost.open(f"sqlite:///{path}", brains={"listener": listener}, limits=QUICK) as service:
        service.agents.create("ann", "d", profile="listener", subscriptions=["alerts.*"])
        service.events.publish("ann", "alerts.fire")
        eventually(lambda: service.agents.memories("ann", "d"))


def test_committed_steps_are_not_edited() -> None:
    """A new step adds its line to the file of hashes; a line that is there never changes."""
    steps = {f.name: f for f in files(migrations.__name__).iterdir() if f.name.endswith(".sql")}
    assert {name: hashlib.sha256(f.read_bytes()).hexdigest() for name, f in steps.items()} == HASHES
