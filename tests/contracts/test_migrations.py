"""The steps lead to the schema, from every earlier version; a newer one is left alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import roost
from roost.errors import Unavailable
from roost.hosts.threads import ThreadHost
from roost.ports import Tx
from roost.stores import migrations
from roost.stores.postgres_connection import PostgresConnection
from roost.stores.sql.journal import approvals
from roost.stores.sqlite import SqliteConnection
from roost.wiring import database
from tests.brains_for_tests import parrot
from tests.conftest import settled
from tests.contracts.conftest import Driven
from tests.servers import fresh_database, fresh_store

TABLES_OF_POSTGRES = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1"
SCHEMA_OF_POSTGRES = (
    TABLES_OF_POSTGRES,
    "SELECT table_name, ordinal_position, column_name, data_type, is_nullable, column_default"
    " FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2",
    "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1, 2",
    "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY 1",
)


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


def test_what_was_to_expire_without_a_timer_gets_one(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    path.touch()
    connection = SqliteConnection(path, now, read_only=False)
    migrations.migrate(connection, dialect="sqlite", to=7)
    connection.begin()
    for name, address, expires in (("1", "ann/d", 9.0), ("2", "ann/d", 5.0), ("3", "ann/e", None), ("4", "", 3.0)):
        connection.write(
            "INSERT INTO inbox (envelope_id, lane, seq, attempts, due, busy, address, expires)"
            " VALUES (:name, '', 0, 0, 0, '', :address, :expires)",
            {"name": name, "address": address, "expires": expires},
        )
    connection.commit()
    migrations.migrate(connection, dialect="sqlite")
    assert connection.read("SELECT address, key, due FROM timers") == [("ann/d", "expiry", 5.0)]
    connection.close()


def test_late_answers_of_an_older_store_get_their_kind(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    path.touch()
    connection = SqliteConnection(path, now, read_only=False)
    try:
        assert kinds_after(connection, "sqlite") == LATE_KINDS
    finally:
        connection.close()


@pytest.mark.postgres
def test_late_answers_of_an_older_database_get_their_kind(postgres: str) -> None:
    with fresh_database(postgres) as empty:
        connection = PostgresConnection(empty, read_only=False)
        try:
            assert kinds_after(connection, "postgres") == LATE_KINDS
        finally:
            connection.close()


LATE = '{"late": true, "asked": "well?", "text": "\\"kind\\": \\"task\\""}'
LATE_KINDS = {
    "task_1:late": ("answer", "answer", LATE),
    "broadcast_1:late": ("task", "task", "hello"),
    "task_2": ("task", "task", LATE),
}


def kinds_after(connection: SqliteConnection | PostgresConnection, dialect: str) -> dict[str, tuple[str, str, str]]:
    """Migrate a store with late answers of schema 8; the kinds in the inbox and in dead letters, and the bodies."""
    migrations.migrate(connection, dialect=dialect, to=8)
    connection.begin()
    for name, (_, _, body) in LATE_KINDS.items():
        kept = json.dumps({"envelope_id": name, "kind": "task", "body": body})
        ids = {"name": name, "body": body, "kept": kept}
        connection.write(
            "INSERT INTO inbox (envelope_id, lane, seq, attempts, due, busy, address, kind, body)"
            " VALUES (:name, '', 0, 0, 0, '', 'ann/d', 'task', :body)",
            ids,
        )
        connection.write(
            "INSERT INTO dead_letters (letter_id, user_id, address, kind, fault, reason, attempts, created, envelope,"
            " envelope_id) VALUES (:name, 'ann', 'ann/d', 'task', '', '', 1, 0, :kept, :name)",
            ids,
        )
    connection.commit()
    migrations.migrate(connection, dialect=dialect)
    rows = connection.read(
        "SELECT envelope_id, i.kind, l.kind, l.envelope FROM inbox i JOIN dead_letters l USING (envelope_id)"
    )
    connection.rollback()
    for _, _, kind, kept in rows:
        assert json.loads(kept)["kind"] == kind
    return {row[0]: (row[1], row[2], json.loads(row[3])["body"]) for row in rows}


STATUSES = {
    ("talk", 1e11): ("parked", 0.0),
    ("talk", 0.0): ("decided", 0.0),
    ("talk", -1.0): ("resumed", 0.0),
    ("talk", 5.0): ("ready", 5.0),
    ("task", 1e11): ("parked", 0.0),
    ("task", 0.0): ("ready", 0.0),
    ("mail", 7.0): ("ready", 7.0),
}


def test_marks_in_the_due_time_of_an_older_store_become_a_status(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    path.touch()
    connection = SqliteConnection(path, now, read_only=False)
    migrations.migrate(connection, dialect="sqlite", to=15)
    connection.begin()
    for kind, due in STATUSES:
        connection.write(
            "INSERT INTO inbox (envelope_id, lane, seq, attempts, due, busy, kind)"
            " VALUES (:id, '', 0, 0, :due, '', :kind)",
            {"id": f"{kind} {due}", "kind": kind, "due": due},
        )
    connection.commit()
    migrations.migrate(connection, dialect="sqlite")
    found = connection.read("SELECT envelope_id, status, due FROM inbox")
    assert {row[0]: row[1:] for row in found} == {f"{kind} {due}": after for (kind, due), after in STATUSES.items()}
    connection.close()


DECISIONS = {"granted": "approved", "refused": "declined", "allowed": "allowed", "answered": "answered", "": None}


def test_decisions_of_an_older_store_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    path.touch()
    connection = SqliteConnection(path, now, read_only=False)
    try:
        assert decisions_after(connection, "sqlite") == DECISIONS
    finally:
        connection.close()


@pytest.mark.postgres
def test_decisions_of_an_older_database_can_be_read(postgres: str) -> None:
    with fresh_database(postgres) as empty:
        connection = PostgresConnection(empty, read_only=False)
        try:
            assert decisions_after(connection, "postgres") == DECISIONS
        finally:
            connection.close()


def decisions_after(connection: SqliteConnection | PostgresConnection, dialect: str) -> dict[str, str | None]:
    """Migrate a store with approvals of schema 29; return the decisions that are read, by those that were stored."""
    migrations.migrate(connection, dialect=dialect, to=29)
    connection.begin()
    for decision in DECISIONS:
        connection.write(
            "INSERT INTO approvals (approval_id, user_id, holder, envelope_id, step, run_id, kind, tool, arguments,"
            " created, decision) VALUES (:id, 'ann', '', '', 1, '', 'call', 'pay', '{}', 0, :decision)",
            {"id": f"approval {decision}", "decision": decision},
        )
    connection.commit()
    migrations.migrate(connection, dialect=dialect)
    found = approvals.listed(connection, "ann", True, 9, "b")
    connection.rollback()
    return {one.approval_id.removeprefix("approval "): one.decision for one in found}


@pytest.mark.postgres
def test_an_empty_database_gets_the_same_tables_as_the_stores_of_the_tests_have(postgres: str, tmp_path: Path) -> None:
    with fresh_store(postgres) as copied, fresh_database(postgres) as empty:
        database(empty, now).release()
        assert state(empty, tmp_path) == state(copied, tmp_path)


def test_the_version_is_the_number_of_steps(store: Driven) -> None:
    def version(tx: Tx) -> str:
        row = tx.one("SELECT value FROM meta WHERE name = 'schema'")
        assert row is not None
        return str(row[0])

    assert store.read(version) == str(len(migrations.steps()))


def state(url: str, folder: Path) -> dict[str, object]:
    """All there is, byte for byte: the files, or on a server the schema and every row."""
    if url.startswith("sqlite:"):
        return {path.name: path.read_bytes() for path in folder.iterdir()}
    connection = PostgresConnection(url, read_only=True)
    try:
        found: dict[str, object] = {question: connection.read(question) for question in SCHEMA_OF_POSTGRES}
        for (table,) in connection.read(TABLES_OF_POSTGRES):
            found[table] = sorted(repr(row) for row in connection.read(f"SELECT * FROM {table}"))
        return found
    finally:
        connection.close()


def hold_a_talk(url: str) -> None:
    with roost.open(url, brains={"parrot": parrot}) as service:
        talk = service.create_talk_session("ann", profile="parrot", title="A talk")
        service.add_message("ann", talk, "hello there")
        assert settled(service, "ann", talk)[-1].content == "hello there "


def test_migrating_twice_changes_nothing(url: str, tmp_path: Path) -> None:
    hold_a_talk(url)
    before = state(url, tmp_path)
    assert "messages" in before or b"CREATE TABLE messages" in (tmp_path / "contract.db").read_bytes()
    for _ in range(2):
        database(url, ThreadHost().clock.now).release()
        assert state(url, tmp_path) == before


def test_migrating_twice_leaves_the_tables_and_indexes_of_a_file_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "twice.db"
    hold_a_talk(f"sqlite:///{path}")
    before = schema(path)
    assert {"messages", "messages_by_key"} <= {name for _, name, _ in before}
    database(f"sqlite:///{path}", now).release()
    assert schema(path) == before


def test_a_newer_store_is_refused_and_left_as_it_was(url: str, tmp_path: Path) -> None:
    hold_a_talk(url)
    made = database(url, now)
    connection = made.connect(read_only=False)
    connection.begin()
    connection.write("UPDATE meta SET value = '999' WHERE name IN ('schema', 'oldest')")
    connection.commit()
    connection.close()
    made.release()
    before = state(url, tmp_path)
    with pytest.raises(Unavailable, match=r"newer Roost \(schema 999"):
        database(url, now)
    assert state(url, tmp_path) == before
