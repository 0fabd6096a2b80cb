"""A store that was copied from SQLite to PostgreSQL has every row, and continues where it was."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

import roost
from roost.errors import StaleCursor, Unavailable
from roost.hosts.pending import drive
from roost.stores import migrations
from roost.stores.copies import backups
from roost.stores.copies.store_copy import copy_store
from roost.stores.copies.target import Filling, Table
from roost.stores.sqlite import SqliteConnection
from tests.api.conftest import BRAINS
from tests.conftest import QUICK, eventually, everything, settled
from tests.contracts.persons import opened, populate
from tests.servers import fresh_database, new_store
from tests.store_rows import in_postgres, in_sqlite, relations

pytestmark = pytest.mark.postgres


@pytest.fixture
def target(postgres: str) -> Iterator[str]:
    with fresh_database(postgres) as made:
        yield made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    new_store(tmp_path / "roost.db")
    return tmp_path / "roost.db"


def at(path: Path) -> str:
    return f"sqlite:///{path}"


def test_every_row_of_every_table_is_copied_and_the_source_is_left_as_it_was(path: Path, target: str) -> None:
    with opened(at(path)) as service:
        populate(service, "ann", "bob")
    before = in_sqlite(path)
    filled = {table for table, rows in before.items() if rows}
    copied = copy_store(path, target)
    assert in_postgres(target) == before == in_sqlite(path)
    assert {one.name: one.rows for one in copied.tables} == {table: len(rows) for table, rows in before.items()}
    assert len(filled) > 30
    assert sorted(one.name for one in path.parent.iterdir()) == ["roost.db"]


def test_both_databases_have_the_same_tables_and_no_foreign_keys(path: Path, target: str) -> None:
    copy_store(path, target)
    with psycopg.connect(target) as db, closing(sqlite3.connect(path)) as source:
        assert db.execute("SELECT count(*) FROM pg_constraint WHERE contype = 'f'").fetchone() == (0,)
        listed = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
        tables = {row[0] for row in db.execute(listed)}
        ours = {(name, row[1]) for name in tables for row in source.execute(f"PRAGMA table_info({name})")}
        assert ours == set(db.execute(listed).fetchall())


async def refuses(turn: roost.Turn) -> AsyncIterator[str]:
    if turn.text:
        raise roost.BrainFailed("not today")
    yield ""


async def works(turn: roost.Turn) -> AsyncIterator[str]:
    yield f"done: {turn.text}"


def test_talks_agents_mail_and_dead_letters_continue_with_the_same_cursors(path: Path, target: str) -> None:
    with roost.open(at(path), brains={"worker": refuses}, limits=QUICK) as service:
        talk = service.create_talk_session("ann", profile="echo")
        service.add_message("ann", talk, "before 🐦")
        settled(service, "ann", talk)
        cursor = service.get_messages("ann", talk).cursor
        for name in ("d", "sleeper"):
            service.agents.create("ann", name, profile="worker")
        service.mail.send("ann", "user:ann", "first", "body", sender="agent:d")
        arrivals = service.mail.arrivals("ann").cursor
        service.agents.sleep("ann", "sleeper", 3600)
        later = service.tasks.send("ann", "sleeper", "later")
        failed = service.tasks.send("ann", "d", "again", max_attempts=1)
        service.tasks.wait("ann", failed, 30)
    copy_store(path, target)
    with roost.open(target, brains={"worker": works}, limits=QUICK) as service:
        assert service.get_messages("ann", talk, after=cursor).messages == ()
        service.add_message("ann", talk, "after")
        settled(service, "ann", talk)
        assert [m.seq for m in service.get_messages("ann", talk, after=cursor).messages] == [3, 4]
        assert len(everything(service, "ann", talk)) == 4
        service.mail.send("ann", "user:ann", "second", "body", sender="agent:d")
        assert [one.subject for one in service.mail.arrivals("ann", after=arrivals).mail] == ["second"]
        assert service.agents.get("ann", "sleeper").state == "sleeping"
        service.agents.wake("ann", "sleeper")
        assert service.tasks.wait("ann", later, 30).result == "done: later"
        [letter] = service.dead_letters.list("ann")
        service.dead_letters.retry("ann", letter.letter_id)
        assert service.tasks.wait("ann", failed, 30).result == "done: again"
        assert {hit.talk_session_id for hit in service.search("ann", "before").hits} == {talk}


def test_schedules_and_due_times_fire_on_the_target(path: Path, target: str) -> None:
    with roost.open(at(path), brains={"worker": works}, limits=QUICK) as service:
        service.agents.create("ann", "d", profile="worker")
        service.agents.create("ann", "sleeper", profile="worker")
        schedule = service.schedules.create("ann", "d", "look", at=datetime.now(UTC) + timedelta(seconds=2))
        service.agents.sleep("ann", "sleeper", 2)
    copy_store(path, target)
    with roost.open(target, brains={"worker": works}, limits=QUICK) as service:
        [done] = eventually(lambda: service.tasks.list("ann", agent="d", status="done"))
        assert (done.schedule_id, done.result) == (schedule.schedule_id, "done: look")
        eventually(lambda: service.agents.get("ann", "sleeper").state == "idle")


def test_cursors_of_a_restored_store_stay_valid_and_those_from_before_stay_stale(path: Path, target: str) -> None:
    with roost.open(at(path), limits=QUICK) as service:
        talk = service.create_talk_session("ann", profile="echo")
        service.add_message("ann", talk, "one")
        settled(service, "ann", talk)
        stale = service.get_messages("ann", talk).cursor
    backups.back_up(path, path.with_name("backup.db"))
    backups.restore(path.with_name("backup.db"), path, path.with_name("aside.db"), "0a1b2c3d")
    with roost.open(at(path), limits=QUICK) as service:
        valid = service.get_messages("ann", talk).cursor
    copy_store(path, target)
    with roost.open(target, limits=QUICK) as service:
        assert service.get_messages("ann", talk, after=valid).messages == ()
        with pytest.raises(StaleCursor):
            service.get_messages("ann", talk, after=stale)


def test_what_ran_when_the_source_crashed_is_suspect_on_the_target(path: Path, target: str) -> None:
    with roost.open(at(path), brains=BRAINS, limits=QUICK) as service:
        talk = service.create_talk_session("ann", profile="endless")
        service.add_message("ann", talk, "go")
        next(change for change in service.stream_messages("ann", talk) if change.message.content)
        eventually(lambda: service.roost.context.recovered.done)  # this process is registered in the store
        backups.back_up(path, path.with_name("crashed.db"))  # as a crash would leave it
    copy_store(path.with_name("crashed.db"), target)
    with roost.open(target, brains=BRAINS, limits=QUICK) as service:
        suspects = eventually(lambda: drive(_suspects(service)))
    assert suspects == [(1,)]


async def _suspects(service: roost.AgentService) -> list[Any]:
    return await service.roost.context.store.read(lambda tx: tx.read("SELECT suspect FROM inbox WHERE suspect > 0"))


def test_rows_of_a_process_stay_behind(path: Path, target: str) -> None:
    names = ("generation", "owner", "owner:node_1", "heartbeat of writer-0", "room of writer-0", "cluster", "kept")
    with closing(sqlite3.connect(path)) as db, db:
        schema = dict[str, str](db.execute("SELECT name, value FROM meta WHERE name IN ('schema', 'oldest')"))
        db.executemany("INSERT OR REPLACE INTO meta (name, value) VALUES (?, 'x')", [(name,) for name in names])
    copy_store(path, target)
    with psycopg.connect(target) as copy:
        found = dict[str, str](copy.execute("SELECT name, value FROM meta").fetchall())
    assert found == {"generation": "x", "kept": "x", **schema}


@pytest.mark.parametrize("version", [9, 17, len(migrations.steps()) - 1])
def test_an_older_store_is_migrated_on_a_copy(tmp_path: Path, target: str, version: int) -> None:
    path = tmp_path / "old.db"
    path.touch()
    connection = SqliteConnection(path, lambda: 0.0, read_only=False)
    migrations.migrate(connection, dialect="sqlite", to=version)
    connection.write("INSERT INTO mailboxes VALUES ('ann', 7)" if version > 20 else _OLD_MAIL)
    connection.close()
    before = path.read_bytes()
    copy_store(path, target)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["old.db"]
    with psycopg.connect(target) as db:
        found = db.execute("SELECT (SELECT count(*) FROM mailboxes) + (SELECT count(*) FROM mail)").fetchone()
        assert found == (1,)


_OLD_MAIL = (
    "INSERT INTO mail (mail_id, thread_id, sender, recipient, subject, body, priority, rank, status, created)"
    " VALUES ('mail_1', 'mail_1', 'user:ann', 'user:bob', 's', 'b', 'normal', 1, 'unread', 1)"
)


def test_tables_of_other_programs_are_named_and_left_behind(path: Path, target: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE _replication (id INTEGER)")
        db.execute("ANALYZE")  # makes sqlite_stat1
    assert copy_store(path, target).skipped == ("_replication",)
    assert "_replication" not in relations(target)


def test_a_difference_is_found_before_anything_is_committed(
    path: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO users (user_id) VALUES ('ann')")

    def damage(filling: Filling, table: Table) -> None:
        if table.name == "users":
            filling._db.execute("UPDATE users SET user_id = 'eve'")

    monkeypatch.setattr(Filling, "analyze", damage)
    with pytest.raises(Unavailable, match=r"'users' of the copy differs from the source \(1 rows"):
        copy_store(path, target)
    assert relations(target) == []


@pytest.mark.alone
def test_a_store_of_20_000_messages_is_copied_in_seconds(path: Path, target: str) -> None:
    with roost.open(at(path), limits=QUICK) as service:
        talk = service.create_talk_session("ann", profile="echo")
    with closing(sqlite3.connect(path)) as db, db:
        db.executemany(
            "INSERT INTO messages (talk_id, seq, sender, content, status, created, revision)"
            " VALUES (?, ?, 'user', ?, 'complete', 1.5, ?)",
            ((talk, n, f"message {n} " + "wört " * 60, n) for n in range(1, 20_001)),
        )
        db.execute("UPDATE talks SET last_seq = 20000, revision = 20000")
    began = time.perf_counter()
    copied = copy_store(path, target)
    print(f"copied and verified {copied.rows:,} rows in {time.perf_counter() - began:.1f} s")
    with roost.open(target, limits=QUICK) as service:
        assert service.get_messages("ann", talk, limit=1).messages[0].content.startswith("message 20000 wört")
    assert time.perf_counter() - began < 60
