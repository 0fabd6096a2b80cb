"""`roost migrate-store`: a copy of everything, or a clear error and nothing changed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

import roost as package
from tests.cli.running import command
from tests.cli.terminals import terminal
from tests.servers import fresh_database
from tests.store_rows import in_postgres, in_sqlite, relations

pytestmark = pytest.mark.postgres


@pytest.fixture
def target(postgres: str) -> Iterator[str]:
    with fresh_database(postgres) as made:
        yield made


@pytest.fixture
def filled(home: Path) -> Path:
    path = home / "data" / "roost.db"
    with package.open(f"sqlite:///{path}") as service:
        service.create_talk_session("ann", profile="echo", title="Birds")
    return path


def refused(source: object, target: str, *words: str) -> None:
    """The command fails with one sentence that has these words, and without secrets."""
    done = command("migrate-store", str(source), target)
    assert (done.exit_code, done.stdout) == (1, ""), done.output
    assert [word for word in words if word not in done.stderr] == [], done.stderr
    assert (done.stderr.count("\n"), "hush" in done.stderr) == (1, False)


def test_a_store_is_copied_and_used_by_its_new_url(filled: Path, target: str) -> None:
    done = command("migrate-store", str(filled), target)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("Copied and verified ")
    assert in_postgres(target) == in_sqlite(filled)
    assert [one["title"] for one in json.loads(command("talks", "ls", "--json", "--store", target).stdout)] == ["Birds"]


def test_json_has_rows_and_checksums_of_every_table(filled: Path, target: str) -> None:
    done = json.loads(command("migrate-store", f"sqlite:///{filled}", target, "--json").stdout)
    assert (done["from"], done["skipped"], done["tables"]["talks"]["rows"]) == (str(filled), [], 1)
    assert done["rows"] == sum(one["rows"] for one in done["tables"].values())
    assert len(done["tables"]["talks"]["checksum"]) == 32


def test_sources_that_cannot_be_copied_leave_the_target_empty(filled: Path, target: str) -> None:
    whole = filled.read_bytes()
    Path("text.db").write_text("no database")
    Path("cut.db").write_bytes(whole[:20_000])
    Path("torn.db").write_bytes(whole[:8192] + b"\xff" * 8192 + whole[16384:])
    Path("newer.db").write_bytes(whole)
    with closing(sqlite3.connect("newer.db")) as db, db:
        db.execute("UPDATE meta SET value = '999' WHERE name = 'schema'")
    with closing(sqlite3.connect("other.db")) as db, db:
        db.execute("CREATE TABLE things (id)")
    for name, word in (
        ("text.db", "is not a store of Roost"),
        ("other.db", "is not a store of Roost"),
        ("cut.db", "cut.db"),
        ("torn.db", "damaged"),
        ("newer.db", "a newer Roost"),
        ("missing.db", "there is no file"),
        ("data", "there is no file"),
        ("mysql://host/name", "unknown store URL scheme 'mysql'"),
        ("postgresql://ann:hush@host/name", "FROM is in PostgreSQL already"),
    ):
        before = Path(name).read_bytes() if Path(name).is_file() else b""
        refused(name, target, word)
        assert relations(target) == [], name
        assert not before or Path(name).read_bytes() == before, name


def test_damage_that_reading_does_not_notice_is_refused(filled: Path, target: str) -> None:
    with closing(sqlite3.connect(filled)) as db, db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute(
            "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'meta')"
            " WHERE name = 'users'"
        )
    with closing(sqlite3.connect(filled)) as db:
        assert db.execute("SELECT user_id FROM users").fetchall()  # rows of another table
    refused(filled, target, "cannot be read", "damaged")
    assert relations(target) == []


def test_a_store_in_use_is_refused(filled: Path, target: str) -> None:
    with package.open(f"sqlite:///{filled}"):
        refused(filled, target, "in use by process")
    assert relations(target) == []


def test_targets_that_are_not_empty_or_in_use_are_refused_and_not_changed(
    filled: Path, target: str, postgres: str
) -> None:
    for to in ("sqlite:///other.db", "other.db", "mysql://host/name"):
        refused(filled, to, "TO must be a database of PostgreSQL")
    with package.open(target):
        refused(filled, target, "is in use by another Roost")
    before = in_postgres(target)
    refused(filled, target, "is not empty", "name a new database")
    assert in_postgres(target) == before
    with fresh_database(postgres) as other:
        with psycopg.connect(other) as db:
            db.execute("CREATE TABLE things (id int)")
        refused(filled, other, "is not empty", "'public.things'")
        assert relations(other) == ["things"]


def test_targets_that_cannot_be_used_are_refused(filled: Path, target: str, postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as db:
        db.execute("CREATE ROLE guest LOGIN PASSWORD 'hush'")
        db.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    try:
        guest = target.replace("roost@", "guest:hush@")
        refused(filled, guest, "does not let 'guest' create tables")
        refused(filled, target.replace("/test_", "/missing_").replace("roost@", "roost:hush@"), "missing_")
        refused(filled, postgres.replace("/postgres?", "/latin?"), "LATIN1", "ENCODING 'UTF8'")
        refused(filled, "postgresql://ann:hush@127.0.0.1:1/none", "cannot be reached")
        with psycopg.connect(target, autocommit=True) as db:
            db.execute("ALTER ROLE guest SET default_transaction_read_only = on")
            db.execute("GRANT CREATE ON SCHEMA public TO guest")
        refused(filled, guest, "is read-only")
        assert relations(target) == []
    finally:
        with psycopg.connect(target, autocommit=True) as db:
            db.execute("DROP OWNED BY guest")
            db.execute("DROP ROLE guest")
        with psycopg.connect(postgres, autocommit=True) as db:
            db.execute("DROP DATABASE latin")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("'a' || char(0) || 'b'", "COPY meta, line 2, column value"),
        ("CAST(x'ff' AS TEXT)", "damaged"),
        ("x'ff00'", "the table 'meta' has a value in the column 'value'"),
    ],
)
def test_values_that_postgresql_cannot_keep_are_named(filled: Path, target: str, value: str, told: str) -> None:
    with closing(sqlite3.connect(filled)) as db, db:
        db.execute("DELETE FROM meta WHERE name <> 'schema'")
        db.execute(f"INSERT INTO meta (name, value) VALUES ('odd', {value})")
    refused(filled, target, told)
    assert relations(target) == []


@pytest.mark.parametrize("value", [1 << 31, 1.5, "many"])
def test_numbers_that_postgresql_cannot_keep_are_named(filled: Path, target: str, value: object) -> None:
    with closing(sqlite3.connect(filled)) as db, db:
        columns = "webhook_id, user_id, name, url, events, secret, created, failures"
        db.execute(f"INSERT INTO webhooks ({columns}) VALUES ('w', '', '', '', '', '', 0, ?)", (value,))
    refused(filled, target, "the table 'webhooks' has a value in the column 'failures'", repr(value))
    assert relations(target) == []


def test_a_terminal_shows_the_progress(filled: Path, target: str) -> None:
    with closing(sqlite3.connect(filled)) as db, db:
        db.executemany("INSERT INTO users (user_id) VALUES (?)", ((f"user {n}",) for n in range(600)))
    with terminal(filled.parents[1], "migrate-store", str(filled), target) as shown:
        shown.becomes("do not start Roost on the old store again")
    assert "Copied 500 of 6" in shown.seen
    assert "Verified 500 of 6" in shown.seen


def test_another_server_is_refused(filled: Path, target: str) -> None:
    done = command("migrate-store", str(filled), target, "--server", "https://roost.example.org")
    assert (done.exit_code, "works on this machine only" in done.stderr) == (1, True)
