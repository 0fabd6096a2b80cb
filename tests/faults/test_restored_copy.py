"""A backup made under load is whole, and a store that was put back to an earlier state says so to its readers."""

from __future__ import annotations

import shutil
import sqlite3
import stat
import sys
import threading
from pathlib import Path

import pytest

import roost
from roost.client import connect
from roost.stores.copies import backups
from roost.ui.talk import continued
from roost.ui.talk_reader import TalkReader
from tests.api.serving import serving
from tests.conftest import ENVIRONMENT, QUICK, everything, settled
from tests.forks import run

TOKEN = "0a1b2c3d"


def opened(path: Path) -> roost.AgentService:
    return roost.open(f"sqlite:///{path}", limits=QUICK)


def said(service: roost.AgentService, talk: str) -> list[str]:
    return [m.content for m in everything(service, "ann", talk) if m.sender == "user"]


def hold(service: roost.AgentService, talk: str, *texts: str) -> None:
    for text in texts:
        service.add_message("ann", talk, text)
        settled(service, "ann", talk)


def restored(backup: Path, store: Path) -> Path:
    aside = store.with_name("aside.db")
    assert backups.restore(backup, store, aside, TOKEN)
    return aside


def test_a_backup_under_load_has_all_that_was_acknowledged_before_it_and_nothing_torn(tmp_path: Path) -> None:
    path, copy, enough = tmp_path / "roost.db", tmp_path / "copy.db", threading.Event()
    acknowledged: list[str] = []
    with opened(path) as service:
        talk = service.create_talk_session("ann", profile="echo", busy="queue")

        def write() -> None:
            while not enough.is_set():
                text = f"{len(acknowledged)} " + "x" * 2_000
                service.add_message("ann", talk, text)
                acknowledged.append(text)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            while len(acknowledged) < 50:
                enough.wait(0.005)
            before = after = 0
            while before == after:  # until one was written to meanwhile
                copy.unlink(missing_ok=True)
                before = len(acknowledged)
                backups.back_up(path, copy)
                after = len(acknowledged)
        finally:
            enough.set()
            writer.join()
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with opened(copy) as service:
        found = said(service, talk)
    assert before <= len(found) <= after + 1
    assert found == [*acknowledged, f"{len(acknowledged)} " + "x" * 2_000][: len(found)]


def test_a_restored_store_is_what_it_was_and_the_one_before_is_kept(tmp_path: Path) -> None:
    path, copy = tmp_path / "roost.db", tmp_path / "copy.db"
    with opened(path) as service:
        talk = service.create_talk_session("ann", profile="echo")
        hold(service, talk, "one")
        backups.back_up(path, copy)
        hold(service, talk, "two")
        with pytest.raises(roost.Unavailable, match="is in use by process"):
            restored(copy, path)
    aside = restored(copy, path)
    with opened(path) as service, opened(aside) as before:
        assert said(service, talk) == ["one"]
        assert said(before, talk) == ["one", "two"]
        hold(service, talk, "three")
        assert said(service, talk) == ["one", "three"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["aside.db", "copy.db", "roost.db"]


def test_what_a_killed_owner_left_in_the_journal_goes_with_the_store_it_belongs_to(tmp_path: Path) -> None:
    path, copy = tmp_path / "roost.db", tmp_path / "copy.db"
    with opened(path) as service:
        talk = service.create_talk_session("ann", profile="echo")
        hold(service, talk, "one")
    backups.back_up(path, copy)
    program = (
        "import os, sys, roost; service = roost.open('sqlite:///' + sys.argv[1]);"
        "service.add_message('ann', sys.argv[2], 'two'); os._exit(9)"
    )
    killed = run([sys.executable, "-c", program, str(path), talk], env=ENVIRONMENT, check=False)
    assert killed.returncode == 9
    assert path.with_name("roost.db-wal").stat().st_size > 0
    aside = restored(copy, path)
    with opened(path) as service, opened(aside) as before:
        assert said(service, talk) == ["one"]
        assert said(before, talk) == ["one", "two"]


def test_a_cursor_from_before_a_restore_is_refused_by_name(tmp_path: Path) -> None:
    path, copy = tmp_path / "roost.db", tmp_path / "copy.db"
    with opened(path) as service:
        talk = service.create_talk_session("ann", profile="echo")
        hold(service, talk, "one")
        backups.back_up(path, copy)
        cursor = service.get_messages("ann", talk).cursor
    restored(copy, path)
    with opened(path) as service:
        hold(service, talk, "two")  # the same numbers, with other contents
        with pytest.raises(roost.StaleCursor, match="read the talk again, without `after`"):
            service.get_messages("ann", talk, after=str(cursor))
        with pytest.raises(roost.StaleCursor):
            next(service.stream_messages("ann", talk, after=str(cursor)))
        fresh = service.get_messages("ann", talk).cursor
        assert TOKEN in fresh
        assert service.get_messages("ann", talk, after=str(fresh)).messages == ()


def test_a_cursor_of_mail_from_before_a_restore_is_refused_by_name(tmp_path: Path) -> None:
    path, copy = tmp_path / "roost.db", tmp_path / "copy.db"
    with opened(path) as service:
        service.mail.send("ann", "user:ann", "one", "words")
        backups.back_up(path, copy)
        service.mail.send("ann", "user:ann", "two", "words")
        cursor = service.mail.arrivals("ann").cursor
    restored(copy, path)
    with opened(path) as service:
        for number in range(3):  # the same numbers, of other mail
            service.mail.send("ann", "user:ann", f"new {number}", "words")
        with pytest.raises(roost.StaleCursor, match="start again"):
            service.mail.arrivals("ann", after=cursor)
        with pytest.raises(roost.StaleCursor):
            next(service.mail.follow("ann", after=cursor))
        found = service.mail.arrivals("ann", after="0")
        assert [mail.subject for mail in found.mail] == ["one", "new 0", "new 1", "new 2"]
        assert TOKEN in found.cursor
        assert service.mail.arrivals("ann", after=found.mail[-2].cursor).mail == found.mail[-1:]


def test_a_cursor_ahead_of_an_older_copy_of_the_file_is_refused_by_name(tmp_path: Path) -> None:
    path, older = tmp_path / "roost.db", tmp_path / "older.db"
    with opened(path) as service:
        talk = service.create_talk_session("ann", profile="echo")
        hold(service, talk, "one")
    shutil.copyfile(path, older)
    with opened(path) as service:
        hold(service, talk, "two")
        cursor = service.get_messages("ann", talk).cursor
    shutil.copyfile(older, path)
    with opened(path) as service:
        with pytest.raises(roost.StaleCursor):
            service.get_messages("ann", talk, after=str(cursor))
        with pytest.raises(roost.StaleCursor):
            next(service.stream_messages("ann", talk, after=str(cursor)))
        assert said(service, talk) == ["one"]


def test_a_backup_that_was_cut_off_is_not_taken_for_one(tmp_path: Path) -> None:
    path, copy = tmp_path / "roost.db", tmp_path / "copy.db"
    opened(path).close()

    def cut_off(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        backups.back_up(path, copy, cut_off)
    assert not copy.exists()
    (tmp_path / "copy.db.partial").write_bytes(b"left by a process that was killed")
    backups.back_up(path, copy)
    opened(copy).close()
    assert not (tmp_path / "copy.db.partial").exists()


@pytest.mark.parametrize("content", [b"", b"Dear diary", b"SQLite format 3\0" + b"x" * 4096])
def test_what_is_no_backup_is_refused_and_the_store_is_left_as_it_was(tmp_path: Path, content: bytes) -> None:
    path, other = tmp_path / "roost.db", tmp_path / "other.db"
    opened(path).close()
    other.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(roost.Unavailable, match="is not a store of Roost"):
        restored(other, path)
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other.db", "roost.db"]


def test_a_backup_of_a_newer_program_is_refused(tmp_path: Path) -> None:
    path, copy = tmp_path / "roost.db", tmp_path / "copy.db"
    opened(path).close()
    backups.back_up(path, copy)
    with sqlite3.connect(copy) as newer:
        newer.execute("UPDATE meta SET value = '999' WHERE name IN ('schema', 'oldest')")
    newer.close()
    before = path.read_bytes()
    with pytest.raises(roost.Unavailable, match="newer Roost"):
        restored(copy, path)
    assert path.read_bytes() == before


def test_a_backup_never_replaces_a_file(tmp_path: Path) -> None:
    path, copy = tmp_path / "roost.db", tmp_path / "copy.db"
    opened(path).close()
    copy.write_text("mine")
    with pytest.raises(roost.Invalid, match="exists already"):
        backups.back_up(path, copy)
    with pytest.raises(roost.Invalid, match="is the store itself"):
        backups.restore(path, path, tmp_path / "aside.db", TOKEN)
    assert copy.read_text() == "mine"


def test_a_stale_cursor_has_its_name_over_the_network_too(tmp_path: Path) -> None:
    with opened(tmp_path / "roost.db") as service, serving(service) as served:
        with connect(served.url, served.identity.token) as remote:
            talk = remote.create_talk_session("ann", profile="echo")
            ahead = f"{talk[-4:]}.9999.0.0"
            with pytest.raises(roost.StaleCursor):
                remote.get_messages("ann", talk, after=ahead)
        with served.browser("ann") as browser:
            reply = browser.get(f"/api/v1/talks/{talk}/messages", params={"after": ahead})
        assert (reply.status_code, reply.json()["code"]) == (409, "stale_cursor")


def test_a_tab_reads_again_when_the_store_was_restored(tmp_path: Path) -> None:
    path, copy = tmp_path / "roost.db", tmp_path / "copy.db"
    with opened(path) as service:
        talk = service.create_talk_session("ann", profile="echo")
        hold(service, talk, "one")
        backups.back_up(path, copy)
        hold(service, talk, "two")
        reading = TalkReader.start(service, "ann", talk)
    restored(copy, path)
    with opened(path) as service:
        again = continued(reading, service)
        assert [m.content for m in again.messages] == ["one", "one"]
        assert continued(again, service) is again
