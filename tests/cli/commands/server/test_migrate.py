"""`roost migrate`: the schema is up to date afterwards, or a sentence says why not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import roost
from roost.stores import migrations
from roost.stores.migrations import compatibility
from roost.stores.postgres_connection import PostgresConnection
from tests.cli.running import command
from tests.servers import fresh_database

KNOWN = migrations.known()
OLDEST = max(compatibility.declared(text, number) for number, text in enumerate(migrations.steps(), 1))
BEFORE_NODE_SCHEMAS = 30
"""Version whose nodes do not say what they know."""


@pytest.fixture
def empty(postgres: str) -> Iterator[str]:
    with fresh_database(postgres) as made:
        yield made


def test_a_new_store_gets_all_steps_and_then_none(home: Path) -> None:
    first = command("migrate", "--json")
    assert json.loads(first.stdout) == {"schema": KNOWN, "oldest": OLDEST, "applied": migrations.names()}
    assert first.stderr == ""
    again = command("migrate")
    assert (again.exit_code, again.stderr) == (0, "")
    assert again.stdout.startswith(f"Schema {KNOWN} is up to date.")


@pytest.mark.postgres
def test_each_step_is_shown_when_it_is_applied(home: Path, empty: str) -> None:
    connection = PostgresConnection(empty, read_only=False)
    migrations.migrate(connection, dialect="postgres", to=KNOWN - 2)
    connection.close()
    done = command("migrate", "--store", empty)
    assert done.stderr.splitlines() == [f"Applied {name}." for name in migrations.names()[-2:]]
    assert done.stdout.startswith(f"Migrated to schema {KNOWN}: 2 steps applied.")


def test_a_store_in_use_is_refused(home: Path) -> None:
    with roost.open(f"sqlite:///{home / 'data' / 'roost.db'}"):
        done = command("migrate")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "is in use by" in done.stderr


@pytest.mark.postgres
def test_older_nodes_are_named_and_nothing_is_changed(home: Path, empty: str) -> None:
    connection = PostgresConnection(empty, read_only=False)
    migrations.migrate(connection, dialect="postgres", to=BEFORE_NODE_SCHEMAS)
    connection.close()
    (home / "roost.toml").write_text(
        f'store = "{empty}"\nsecret = "a secret of this test"\n[cluster]\nnats = "nats://127.0.0.1:1"\n'
    )
    with psycopg.connect(empty, autocommit=True) as db:
        db.execute(
            "INSERT INTO nodes VALUES ('node_1', 'berlin', '', '0.9', '[]', 'up', 0, roost_now() + 60, 0, 0, 0, 0)"
        )
        refused = command("migrate", "--json", "--config", str(home / "roost.toml"))
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert "'berlin' (0.9). Stop all of them first" in refused.stderr
        db.execute("UPDATE nodes SET state = 'gone'")
    done = command("migrate", "--json", "--config", str(home / "roost.toml"))
    assert json.loads(done.stdout)["applied"] == migrations.names()[BEFORE_NODE_SCHEMAS:]
