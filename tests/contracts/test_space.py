"""Free pages: a SQLite file gives them back a few at a time, and an older file gets the mode that this needs."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from roost.hosts.threads import ThreadHost
from roost.ports import Tx
from roost.stores import space
from roost.stores.copies import backups
from roost.stores.engine import Engine
from roost.stores.sql import retention
from roost.wiring import database
from tests.contracts.conftest import Driven
from tests.servers import new_store

ROWS, KEPT = 2_000, 0.1


def value(path: Path, pragma: str) -> int:
    with closing(sqlite3.connect(path)) as db:
        return int(db.execute(f"PRAGMA {pragma}").fetchone()[0])


def fill(tx: Tx) -> None:
    for number in range(ROWS):
        tx.later("figures", _COLUMNS, ("ann", f"{number:05}" + 400 * "x", 10, number, "", 0, 1, 1.0))


_COLUMNS = ("user_id", "name", "width", "start", "label", "bin", "count", "total")


def empty(tx: Tx) -> None:
    tx.write("DELETE FROM figures WHERE start > :few", {"few": 100})


def free_pages(tx: Tx) -> int:
    return int(tx.read("PRAGMA freelist_count")[0][0])


def opened(path: Path) -> Driven:
    host = ThreadHost()
    return Driven(Engine(host, database(f"sqlite:///{path}", host.clock.now), queued=100))


def with_free_pages(path: Path) -> Driven:
    store = opened(path)
    store.write(fill)
    store.write(empty)
    return store


def older(path: Path) -> Path:
    """Return a store as an older program has created it."""
    new_store(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("PRAGMA auto_vacuum = NONE")
        db.execute("VACUUM")
    return path


def test_any_store_can_be_asked_to_give_space_back(store: Driven) -> None:
    store.write(fill)
    store.write(empty)
    for _ in range(ROWS):
        if not store.write(retention.give_back, 50, KEPT):
            break
    assert store.write(retention.give_back, 50, KEPT) is False
    assert store.read(lambda tx: tx.read("SELECT count(*) FROM figures"))[0][0] == 101


def test_a_file_becomes_smaller_in_steps_and_keeps_some_free_pages(tmp_path: Path) -> None:
    path = tmp_path / "roost.db"
    store = with_free_pages(path)
    size, before = path.stat().st_size + path.with_name("roost.db-wal").stat().st_size, store.read(free_pages)
    assert store.write(retention.give_back, 7, KEPT) is True
    assert store.read(free_pages) == before - 7
    while store.write(retention.give_back, 50, KEPT):
        pass
    left = store.read(free_pages)
    store.engine.close()
    pages = value(path, "page_count")
    assert left == value(path, "freelist_count")
    assert pages * KEPT < left < pages * 1.5 * KEPT
    assert path.stat().st_size < size / 3
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        assert db.execute("SELECT count(*) FROM figures").fetchone()[0] == 101


def test_a_small_file_of_an_older_program_gets_the_mode_when_it_is_opened(tmp_path: Path) -> None:
    path = older(tmp_path / "roost.db")
    assert value(path, "auto_vacuum") == 0
    opened(path).engine.close()
    assert value(path, "auto_vacuum") == 2


def test_a_large_file_of_an_older_program_is_left_alone_until_it_is_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = older(tmp_path / "roost.db")
    monkeypatch.setattr(space, "SMALL", 0)
    store = with_free_pages(path)
    before = store.read(free_pages)
    assert store.write(retention.give_back, 50, KEPT) is False
    assert store.read(free_pages) == before > 0
    copy = tmp_path / "copy.db"
    backups.back_up(path, copy)  # while it is in use
    assert store.read(free_pages) == before
    store.engine.close()
    assert (value(path, "auto_vacuum"), value(copy, "auto_vacuum"), value(copy, "freelist_count")) == (0, 2, 0)
    backups.restore(copy, path, tmp_path / "aside.db", "generation")
    assert value(path, "auto_vacuum") == 2


def test_a_file_that_cannot_be_rebuilt_is_opened_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = older(tmp_path / "roost.db")

    def fails(_: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(space, "rebuild", fails)
    opened(path).engine.close()
    assert value(path, "auto_vacuum") == 0
