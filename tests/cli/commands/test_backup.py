"""`roost backup` and `roost restore`: nothing is overwritten unasked, and what fails leaves nothing behind."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import roost as package
from tests.cli.running import COMMAND, command, environment
from tests.conftest import eventually


def store(folder: Path) -> str:
    return f"sqlite:///{folder}/data/roost.db"


@pytest.fixture
def filled(home: Path) -> Path:
    with package.open(store(home)) as service:
        service.create_talk_session("ann", profile="echo", title="Birds")
    return home


def titles(folder: Path) -> list[str]:
    return [talk["title"] for talk in json.loads(command("talks", "ls", "--json").stdout)]


def test_a_store_is_backed_up_while_it_is_used_and_replaced_only_if_asked(filled: Path) -> None:
    with package.open(store(filled)) as service:
        made = command("backup", "copy.db")
        assert made.exit_code == 0, made.output
        assert Path("copy.db").stat().st_mode & 0o777 == 0o600
        service.create_talk_session("ann", profile="echo", title="Later")
        in_use = command("restore", "copy.db", "--yes")
        assert (in_use.exit_code, "in use" in in_use.stderr) == (1, True)
    unasked = command("restore", "copy.db")
    assert (unasked.exit_code, "exists: --yes replaces it by the backup" in unasked.stderr) == (1, True)
    assert titles(filled) == ["Later", "Birds"]
    done = json.loads(command("restore", "copy.db", "--yes", "--json").stdout)
    assert Path(done["before"]).exists()
    assert titles(filled) == ["Birds"]


def test_a_store_that_does_not_exist_is_restored_without_asking(filled: Path) -> None:
    command("backup", "copy.db")
    for file in (filled / "data").glob("roost.db*"):
        file.unlink()
    assert command("restore", "copy.db").exit_code == 0
    assert titles(filled) == ["Birds"]


def test_what_is_no_backup_changes_nothing(filled: Path) -> None:
    Path("text.db").write_text("no database")
    Path("cut.db").write_bytes((filled / "data" / "roost.db").read_bytes()[:5_000])
    for name in ("text.db", "cut.db", "missing.db", "data"):
        refused = command("restore", name, "--yes")
        assert (refused.exit_code, refused.stdout) == (1, ""), name
    assert titles(filled) == ["Birds"]
    assert command("backup", "text.db").exit_code == 1
    assert Path("text.db").read_text() == "no database"


def test_a_store_in_postgresql_names_the_command_and_no_password(home: Path) -> None:
    url = "postgresql://ann:hush@db.example.org/roost"
    for arguments, told in (
        (("backup", "a b.dump"), "pg_dump --format=custom --file='a b.dump' postgresql://ann@db.example.org/roost"),
        (
            ("restore", "x.dump"),
            "pg_restore --clean --if-exists --single-transaction --dbname=postgresql://ann@db.example.org/roost x.dump",
        ),
    ):
        refused = command(*arguments, "--store", url)
        assert (refused.exit_code, refused.stderr.strip().endswith(f"Run: {told}")) == (1, True), refused.stderr
        assert "hush" not in refused.output


def _small() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def test_a_full_disk_leaves_no_backup(filled: Path) -> None:
    failed = _backed_up(filled, "full.db", _small)
    assert failed.wait(30) == 1
    assert sorted(file.name for file in filled.glob("full.db*")) == []


def test_a_killed_backup_is_not_taken_for_one_and_the_next_one_succeeds(filled: Path) -> None:
    with package.open(store(filled)) as service:
        talk = service.create_talk_session("ann", profile="echo", title="Long", busy="queue")
        for number in range(20):
            service.add_message("ann", talk, f"{number} " + "x" * 400_000)
        service.stop("ann", talk, wait=10)
    process = _backed_up(filled, "copy.db")
    eventually(lambda: (filled / "copy.db.partial").exists() or process.poll() is not None, 30)
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    if not (filled / "copy.db").exists():  # else it was quicker
        assert command("backup", "copy.db").exit_code == 0
    assert not (filled / "copy.db.partial").exists()
    assert command("restore", "copy.db", "--yes").exit_code == 0
    assert titles(filled) == ["Long", "Birds"]


def _backed_up(folder: Path, name: str, before: Callable[[], None] | None = None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, "backup", name], cwd=folder, env=environment(folder), stderr=subprocess.DEVNULL, preexec_fn=before
    )
