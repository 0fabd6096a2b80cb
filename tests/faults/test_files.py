"""S7: a file that cannot be used gives one clear sentence, and is left as it was."""

from __future__ import annotations

import ctypes
import hashlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import roost
from roost.stores import migrations
from tests.brains_for_tests import Puppet
from tests.conftest import ENVIRONMENT, QUICK, Open, everything, settled


def refused(path: Path, match: str) -> str:
    """Opening is refused with one sentence that names the file; the lock is let go again."""
    with pytest.raises(roost.Unavailable, match=match) as refusal:
        roost.open(f"sqlite:///{path}", limits=QUICK)
    told = str(refusal.value)
    assert "\n" not in told
    assert not path.with_name(path.name + ".lock").exists()
    return told


def filled(path: Path, messages: int = 3) -> str:
    """A file with one talk in it."""
    with roost.open(f"sqlite:///{path}", brains={"puppet": Puppet()}, limits=QUICK) as service:
        talk = service.create_talk_session("ann", profile="puppet")
        for number in range(messages):
            service.add_message("ann", talk, f"message {number} " + "x" * 500)
            settled(service, "ann", talk)
    return talk


def print_of(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir() if p.is_file()}


@pytest.mark.parametrize("content", [b"Dear diary, " * 100, os.urandom(8192), b"SQLite format 4\0" + b"x" * 4096])
def test_a_file_that_is_not_a_database_is_refused_and_left_as_it_was(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "diary.db"
    path.write_bytes(content)
    before = print_of(tmp_path)
    assert str(path) in refused(path, "is not a SQLite database: move it away or name another")
    assert print_of(tmp_path) == before


@pytest.mark.parametrize(
    "schema",
    ["CREATE TABLE birds (name TEXT)", "CREATE TABLE messages (a INTEGER)", "CREATE TABLE meta (a INTEGER)"],
)
def test_a_database_of_another_program_is_refused_and_left_as_it_was(tmp_path: Path, schema: str) -> None:
    path = tmp_path / "other.db"
    other = sqlite3.connect(path)
    other.execute(schema)
    other.close()
    before = print_of(tmp_path)
    assert str(path) in refused(path, "belongs to another program: name another file")
    assert print_of(tmp_path) == before


def test_a_missing_folder_is_named_and_works_once_it_is_made(tmp_path: Path) -> None:
    path = tmp_path / "not" / "there" / "roost.db"
    assert str(path.parent) in refused(path, "does not exist: create it or name another one")
    path.parent.mkdir(parents=True)
    filled(path)


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "roost.db"
    path.mkdir()
    assert str(path) in refused(path, "cannot be opened")
    path.rmdir()
    filled(path)


def test_a_file_of_a_newer_program_is_refused_and_not_a_byte_is_touched(tmp_path: Path) -> None:
    path = tmp_path / "roost.db"
    talk = filled(path)
    newer = sqlite3.connect(path)
    newer.execute("UPDATE meta SET value = '999' WHERE name IN ('schema', 'oldest')")
    newer.commit()
    newer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    newer.close()
    before = print_of(tmp_path)
    refused(path, "newer Roost .schema 999.*nothing was changed")
    assert print_of(tmp_path) == before
    newer = sqlite3.connect(path)
    newer.execute("UPDATE meta SET value = ? WHERE name IN ('schema', 'oldest')", (str(len(migrations.steps())),))
    newer.commit()
    newer.close()
    with roost.open(f"sqlite:///{path}", limits=QUICK) as service:
        assert len(everything(service, "ann", talk)) == 6


def test_a_version_that_is_no_number_is_refused_with_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "roost.db"
    filled(path)
    damaged = sqlite3.connect(path)
    damaged.execute("UPDATE meta SET value = 'banana' WHERE name = 'schema'")
    damaged.commit()
    damaged.close()
    before = print_of(tmp_path)
    refused(path, "damaged")
    assert print_of(tmp_path) == before


@pytest.mark.parametrize("start", [100, 4096])
def test_a_file_of_which_only_the_beginning_is_whole_is_refused(tmp_path: Path, start: int) -> None:
    path = tmp_path / "roost.db"
    filled(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:start] + b"\xff" * (len(whole) - start))
    before = path.read_bytes()
    refused(path, "is damaged: restore it from a backup|is not a SQLite database")
    assert path.read_bytes() == before


def test_a_damaged_page_fails_only_its_readers(tmp_path: Path) -> None:
    path = tmp_path / "roost.db"
    talk = filled(path, messages=60)
    whole = bytearray(path.read_bytes())
    for start in range(0, len(whole), 4096):
        if b"x" * 500 in whole[start : start + 4096]:  # a page with messages
            whole[start : start + 4000] = b"\xff" * 4000
    path.write_bytes(whole)
    with roost.open(f"sqlite:///{path}", limits=QUICK) as service:
        with pytest.raises(roost.Unavailable, match="is damaged: restore it from a backup"):
            everything(service, "ann", talk)
        assert service.health().problem is None


HOLDER = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Another process, which knows nothing of Roost, has the file for itself."""
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        yield
        child.communicate("")


def test_a_file_that_another_process_holds_is_refused_and_opened_when_it_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "roost.db"
    talk = filled(path)
    with held(path):
        assert str(path) in refused(path, "another program holds .*: end it and try again")
    with roost.open(f"sqlite:///{path}", limits=QUICK) as service:
        assert len(everything(service, "ann", talk)) == 6


def test_a_message_is_refused_while_another_process_holds_the_file_and_taken_when_it_lets_go(
    service: Open, tmp_path: Path
) -> None:
    roosted = service({"puppet": Puppet()})
    talk = roosted.create_talk_session("ann", profile="puppet")
    with held(tmp_path / "roost.db"), pytest.raises(roost.Unavailable, match="another program holds"):
        roosted.add_message("ann", talk, "hello", key="k")
    roosted.add_message("ann", talk, "hello", key="k")
    assert [m.content for m in settled(roosted, "ann", talk)] == ["hello", "heard hello"]


SCRIPT = """
import sys, roost
try:
    with roost.open("sqlite:///" + sys.argv[1]) as service:
        service.create_talk_session("ann", profile="echo")
        print("written")
except roost.RoostError as error:
    print(type(error).__name__, error)
"""


def _as_a_plain_user(path: Path) -> str:
    """Return the error of opening as a user without root permissions."""

    def give_up_roots_rights() -> None:
        drop, override, search = 24, 1, 2
        for right in (override, search):
            ctypes.CDLL(None).prctl(drop, right, 0, 0, 0)

    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        preexec_fn=give_up_roots_rights,
    )
    assert "Traceback" not in run.stderr, run.stderr
    return run.stdout


PROTECTIONS: dict[str, Callable[[Path], None]] = {
    "the file may only be read": lambda path: path.chmod(0o444),
    "the file may not even be read": lambda path: path.chmod(0o000),
    "the folder may only be read": lambda path: path.parent.chmod(0o555),
}


@pytest.mark.parametrize("what", sorted(PROTECTIONS))
def test_a_file_or_folder_that_may_not_be_written_is_named_and_works_once_it_may(tmp_path: Path, what: str) -> None:
    path = tmp_path / "roost.db"
    talk = filled(path)
    PROTECTIONS[what](path)
    told = _as_a_plain_user(path)
    assert told.startswith("Unavailable "), told
    assert str(path) in told or str(path.parent) in told
    assert "writable" in told or "may be read and written" in told
    path.parent.chmod(0o700)
    path.chmod(0o600)
    assert _as_a_plain_user(path) == "written\n"
    with roost.open(f"sqlite:///{path}", limits=QUICK) as service:
        assert len(everything(service, "ann", talk)) == 6


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite:///:memory:", "mysql://host/x", "roost.db"])
def test_a_url_that_names_no_file_is_refused(url: str) -> None:
    with pytest.raises(roost.Invalid, match="use sqlite:///"):
        roost.open(url)
