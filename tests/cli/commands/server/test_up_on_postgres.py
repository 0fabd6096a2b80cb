"""Commands beside a `roost up` on PostgreSQL: they find it by what it announces in the database."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from roost.stores.postgres import owner
from tests.cli.running import roost, up
from tests.servers import fresh_store

pytestmark = pytest.mark.postgres


@pytest.fixture
def url(postgres: str) -> Iterator[str]:
    with fresh_store(postgres) as made:
        yield made


def test_commands_reach_the_process_that_has_the_database(tmp_path: Path, url: str) -> None:
    with up(tmp_path, "--store", url, "--no-browser") as running:
        made = roost(tmp_path, "agents", "create", "d", "--profile", "echo", "--store", url)
        assert made.returncode == 0, made.stderr
        done = roost(tmp_path, "tasks", "send", "d", "hello", "--wait", "--store", url)
        assert "hello" in done.stdout, done.stderr
        again = roost(tmp_path, "up", "--store", url)
        assert again.returncode == 1
        assert f"Roost is already running on this store at http://localhost:{running.port}" in again.stderr
        stranger = roost(tmp_path, "agents", "ls", "--store", url, ROOST_DATA=str(tmp_path / "other"))
        assert stranger.returncode == 1
        assert f"in use by another Roost (process {running.process.pid} on " in stranger.stderr
        assert "use it with --server URL" in stranger.stderr
        assert running.end(signal.SIGTERM) == 0
    assert owner(url) == {}
    listed = roost(tmp_path, "agents", "ls", "--json", "--store", url)
    assert [agent["agentId"] for agent in json.loads(listed.stdout)] == ["d"]


def test_every_group_of_commands_reaches_it(tmp_path: Path, url: str) -> None:
    lists = ("talks", "agents", "tasks", "schedules", "mail", "meetings", "approvals", "runs", "dead-letters", "tokens")
    with up(tmp_path, "--store", url, command="serve") as running:
        done = [roost(tmp_path, group, "ls", "--json", "--store", url) for group in lists]
        done += [
            roost(tmp_path, "events", "history", "--json", "--store", url),
            roost(tmp_path, "chat", "hello", "--profile", "echo", "--store", url),
            roost(tmp_path, "export", "ann.roost", "--store", url),
            roost(tmp_path, "import", "ann.roost", "--store", url),
        ]
        assert [one.stderr for one in done if one.returncode] == []
        examined = roost(tmp_path, "doctor", "--store", url)
        assert "the database answers" in examined.stdout, examined.stdout + examined.stderr
        assert "in use" not in examined.stdout
        owned = running.end(signal.SIGTERM)
    assert owned == 0


def test_the_announcement_of_a_killed_process_is_ignored(tmp_path: Path, url: str) -> None:
    with up(tmp_path, "--store", url, "--no-browser") as running:
        assert owner(url)["pid"] == running.process.pid
        running.end(signal.SIGKILL)
    assert owner(url)
    listed = roost(tmp_path, "agents", "ls", "--store", url)
    assert listed.returncode == 0, listed.stderr


def test_no_token_is_in_the_database(tmp_path: Path, url: str) -> None:
    with up(tmp_path, "--store", url, "--no-browser"), psycopg.connect(url) as database:
        row = database.execute("SELECT value FROM meta WHERE name = 'owner'").fetchone()
        assert row is not None
        assert set(json.loads(row[0])) == {"pid", "host", "url", "nonce"}
