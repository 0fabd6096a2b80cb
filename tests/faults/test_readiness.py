"""/readyz says whether what is written now is kept: with a full disk, a failing sync, a file that is gone."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import roost
from roost.api import readiness
from roost.hosts.pending import drive
from roost.stores import heartbeat
from roost.stores.presence import COARSE, Presence
from roost.stores.sqlite import SqliteConnection
from tests.api.serving import Served, serving
from tests.conftest import QUICK, Open, eventually, everything
from tests.faults.test_full_disk import Disk, disk, refused_while_full

__all__ = ["disk"]


@pytest.fixture(autouse=True)
def _beat_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "EVERY", 0.05)


@pytest.fixture
def served(service: Open) -> Iterator[Served]:
    with serving(service({"endless": endless}, limits=QUICK)) as running:
        yield running


async def endless(turn: roost.Turn) -> AsyncIterator[str]:
    for number in range(100_000):
        yield f"{number} "
        await asyncio.sleep(0.01)


def probe(served: Served) -> tuple[int, str]:
    with served.browser(None) as nobody:
        answer = nobody.get("/readyz")
        return answer.status_code, answer.json().get("problem", "")


def heartbeats(path: Path) -> list[float]:
    with sqlite3.connect(path) as database:
        found = database.execute("SELECT value FROM meta WHERE name LIKE 'heartbeat%'").fetchall()
    return [float(value) for (value,) in found]


async def write_small(served: Served) -> None:
    await served.service.roost.context.store.write(heartbeat.write, "a test", 1.0)


def store_of(served: Served) -> Path:
    path: Path = served.service.roost.context.store.database.path  # type: ignore[attr-defined]
    return path


def test_a_full_disk_is_not_ready_and_space_makes_it_ready_again(service: Open, disk: Disk) -> None:
    disk.service = service(name="disk/roost.db", limits=QUICK)
    with serving(disk.service) as served:
        talk = disk.service.create_talk_session("ann", profile="echo")
        assert probe(served) == (200, "")
        disk.fill()
        if not disk.mounted:  # then only a write finds out
            refused_while_full(disk.service, talk)
        eventually(lambda: probe(served)[0] == 503)
        assert "the disk is full" in probe(served)[1]
        assert str(disk.folder) not in probe(served)[1]
        disk.free()
        eventually(lambda: probe(served) == (200, ""))


def test_heartbeats_that_fit_into_a_full_store_do_not_make_it_ready(served: Served, tmp_path: Path) -> None:
    full = Disk(tmp_path, mount=False)
    full.service = served.service
    talk = served.service.create_talk_session("ann", profile="echo")
    assert probe(served) == (200, "")
    full.fill()
    refused_while_full(served.service, talk)
    eventually(lambda: probe(served)[0] == 503)
    assert "the disk is full" in probe(served)[1]
    drive(write_small(served))
    assert 1.0 in heartbeats(store_of(served))
    assert probe(served)[0] == 503
    full.free()
    eventually(lambda: probe(served) == (200, ""))
    served.service.add_message("ann", talk, "after")


def test_a_sync_that_fails_is_not_ready_and_no_write_is_acknowledged(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    fired = threading.Event()

    def failing(self: SqliteConnection) -> None:
        fired.set()
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
        raise error

    assert probe(served)[0] == 200
    with monkeypatch.context() as broken:
        broken.setattr(SqliteConnection, "commit", failing)
        eventually(lambda: probe(served)[0] == 503)
        with pytest.raises(roost.Unavailable, match=r"the disk with .* reports an error"):
            served.service.create_talk_session("ann", profile="echo")
    assert fired.is_set()
    eventually(lambda: probe(served) == (200, ""))
    assert served.service.list_sessions("ann") == []


def test_a_journal_that_is_gone_is_not_ready_and_takes_no_writes(served: Served) -> None:
    served.service.create_talk_session("ann", profile="echo")
    served.service.create_talk_session("ann", profile="echo")
    journal = Path(f"{store_of(served)}-wal")
    assert probe(served)[0] == 200
    away = journal.with_name("away")
    journal.rename(away)
    with pytest.raises(roost.Unavailable, match="moved, removed or replaced"):
        served.service.create_talk_session("ann", profile="echo")
    eventually(lambda: probe(served)[0] == 503)
    away.rename(journal)
    eventually(lambda: probe(served) == (200, ""))
    assert len(served.service.list_sessions("ann")) == 2


@pytest.mark.parametrize("what", ["removed", "replaced", "moved away with its folder's name"])
def test_a_file_that_is_gone_is_not_ready_and_takes_no_writes(served: Served, what: str) -> None:
    path = store_of(served)
    kept = served.service.create_talk_session("ann", profile="echo")
    assert probe(served)[0] == 200
    away = path.with_name("away.db")
    with served.browser("ann") as ann:  # its cookie is read from the store
        if what == "removed":
            path.unlink()
        else:
            path.rename(away)
            if what == "replaced":
                shutil.copy(away, path)
        answer = ann.post("/api/v1/talks", json={"profile": "echo"})
        assert answer.status_code == 503
        message = answer.json()["detail"]
        assert message.startswith("the store's file was moved, removed or replaced while Roost used it")
        assert str(path.parent) not in answer.text
    with served.command_line() as operator:
        assert str(path) in operator.post("/api/v1/talks", json={"profile": "echo"}).json()["detail"]
    eventually(lambda: probe(served)[0] == 503)
    if what != "removed":
        away.replace(path)  # as it was
        eventually(lambda: probe(served) == (200, ""))
        assert [talk.talk_session_id for talk in served.service.list_sessions("ann")] == [kept]


def test_an_answer_is_not_shown_as_streaming_by_a_process_that_has_lost_its_store(served: Served) -> None:
    talk = served.service.create_talk_session("ann", profile="endless")
    served.service.add_message("ann", talk, "go")
    eventually(lambda: everything(served.service, "ann", talk)[-1].status == "streaming")
    path = store_of(served)
    with served.browser("ann") as ann:  # its cookie is read from the store
        path.rename(path.with_name("away.db"))
        eventually(lambda: ann.get(f"/api/v1/talks/{talk}/messages").status_code == 503)
    with pytest.raises(roost.Unavailable, match="moved, removed or replaced"):
        for _ in served.service.stream_messages("ann", talk):
            pass


def test_the_first_read_of_a_file_that_is_gone_says_so(service: Open) -> None:
    opened = service()  # SQLite opens a file when it is used
    path: Path = opened.roost.context.store.database.path  # type: ignore[attr-defined]
    path.rename(path.with_name("away.db"))
    with pytest.raises(roost.Unavailable, match="moved, removed or replaced"):
        opened.list_sessions("ann")
    path.with_name("away.db").rename(path)
    assert opened.list_sessions("ann") == []


def test_a_change_of_the_folder_is_checked_although_its_time_is_the_same(tmp_path: Path) -> None:
    path, away = tmp_path / "roost.db", tmp_path / "away.db"
    path.touch()
    file = os.open(path, os.O_RDONLY)
    presence = Presence(path, file)
    changed = os.stat(tmp_path).st_mtime_ns
    assert presence.is_certain(changed / 1e9 + COARSE / 2)
    path.rename(away)
    os.utime(tmp_path, ns=(changed, changed))  # as if it were within the same tick of the clock
    assert not presence.is_certain(changed / 1e9 + COARSE / 2)
    away.rename(path)
    assert presence.is_certain(changed / 1e9 + 10 * COARSE)
    path.rename(away)
    os.utime(tmp_path, ns=(changed + 10**9, changed + 10**9))
    assert not presence.is_certain(changed / 1e9 + 1)
    presence.close()
    os.close(file)


def test_probes_share_one_heartbeat_a_second(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "EVERY", 1.0)
    path = store_of(served)
    served.service.create_talk_session("ann", profile="echo")
    began, seen = time.monotonic(), set()
    for _ in range(200):
        assert probe(served)[0] == 200
        seen.update(heartbeats(path))
    assert len(seen) <= 2 + (time.monotonic() - began) / 1.0


def test_an_ordinary_commit_counts_as_a_heartbeat(service: Open) -> None:
    opened = service()
    opened.create_talk_session("ann", profile="echo")
    path: Path = opened.roost.context.store.database.path  # type: ignore[attr-defined]
    drive(opened.asynchronous.heartbeat(60.0))
    assert heartbeats(path) == []
    drive(opened.asynchronous.heartbeat(0.0))
    assert len(heartbeats(path)) == 1


def test_nothing_is_written_without_probes(served: Served) -> None:
    before = os.stat(store_of(served)).st_mtime_ns
    assert heartbeats(store_of(served)) == []
    with served.browser(None) as nobody:
        for _ in range(20):
            assert nobody.get("/healthz").status_code == 200
    assert heartbeats(store_of(served)) == []
    assert os.stat(store_of(served)).st_mtime_ns == before


def test_a_writer_that_hangs_is_not_ready_in_bounded_time(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "PATIENCE", 0.2)
    release, hangs = threading.Event(), threading.Event()

    def hang(tx: object) -> None:
        hangs.set()
        release.wait(20)

    pending = served.service.roost.context.store.write(hang)
    assert hangs.wait(20)
    try:
        eventually(lambda: probe(served)[0] == 503)
        assert "no write to the store has completed" in probe(served)[1]
    finally:
        release.set()
    eventually(lambda: probe(served) == (200, ""))
    assert pending.done
