"""A copy to PostgreSQL that is killed leaves the target empty and the source as it was; the next one succeeds."""

from __future__ import annotations

import signal
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from roost.stores import migrations
from roost.stores.copies.store_copy import copy_store
from roost.stores.sqlite import SqliteConnection
from tests.conftest import ENVIRONMENT
from tests.forks import run
from tests.servers import fresh_database, new_store
from tests.store_rows import in_postgres, in_sqlite, relations

pytestmark = pytest.mark.postgres

DRIVER = """
import os, signal, sys
from pathlib import Path
from roost.stores.copies.store_copy import copy_store

def report(verb, done, whole):
    if verb == sys.argv[3] and done >= 5_000:
        os.kill(os.getpid(), signal.SIGKILL)

copy_store(Path(sys.argv[1]), sys.argv[2], report)
"""


def killed(path: Path, target: str, verb: str) -> None:
    process = run([sys.executable, "-c", DRIVER, str(path), target, verb], env=ENVIRONMENT, timeout=60, check=False)
    assert process.returncode == -signal.SIGKILL


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "roost.db"
    new_store(path)
    with closing(sqlite3.connect(path)) as db, db:
        db.executemany("INSERT INTO users (user_id) VALUES (?)", ((f"user {n}",) for n in range(10_000)))
    return path


@pytest.mark.parametrize("verb", ["Copied", "Verified"])
def test_a_killed_copy_leaves_the_target_empty_and_the_next_one_succeeds(path: Path, postgres: str, verb: str) -> None:
    before = in_sqlite(path)
    with fresh_database(postgres) as target:
        killed(path, target, verb)
        assert relations(target) == []
        assert in_sqlite(path) == before
        copy_store(path, target)  # waits for the end of the killed session
        assert in_postgres(target) == before


def test_a_killed_copy_of_an_older_store_leaves_a_file_that_the_next_one_replaces(
    tmp_path: Path, postgres: str
) -> None:
    path = tmp_path / "roost.db"
    path.touch()
    with closing(SqliteConnection(path, lambda: 0.0, read_only=False)) as connection:
        migrations.migrate(connection, dialect="sqlite", to=28)
        for number in range(10_000):
            connection.write("INSERT INTO users (user_id) VALUES (:name)", {"name": f"user {number}"})
    with fresh_database(postgres) as target:
        killed(path, target, "Copied")
        assert path.with_name("roost.db.migrated").exists()
        assert relations(target) == []
        assert copy_store(path, target).rows > 10_000
    assert [one.name for one in tmp_path.iterdir()] == ["roost.db"]
