"""Programs of different versions on one store: `oldest` decides, and no step is applied under nodes it would break."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from roost.core.cluster.nodes import NewNode
from roost.errors import Unavailable
from roost.hosts.threads import ThreadHost
from roost.stores import migrations
from roost.stores.engine import Engine
from roost.stores.postgres_connection import PostgresConnection
from roost.stores.sql import nodes
from roost.wiring import database
from tests.conftest import eventually
from tests.contracts.conftest import Driven
from tests.contracts.test_migrations import hold_a_talk, now, state
from tests.servers import fresh_store

KNOWN = migrations.known()
NEXT = KNOWN + 1
EXPAND = f"-- oldest: {KNOWN}\n\nALTER TABLE talks ADD COLUMN colour TEXT NOT NULL DEFAULT 'red';\n"
CONTRACT = f"-- oldest: {NEXT}\n\nALTER TABLE talks ADD COLUMN weight BIGINT NOT NULL DEFAULT 0;\n"
BREAK = "-- A column is renamed.\n\nALTER TABLE inbox RENAME COLUMN busy TO policy;\n"


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make this program one that knows these steps in addition."""
    names, steps = migrations.names(), migrations.steps()

    def become(*texts: str) -> None:
        more = [f"{KNOWN + number:04}_more.sql" for number in range(1, len(texts) + 1)]
        monkeypatch.setattr(migrations, "names", lambda: [*names, *more])
        monkeypatch.setattr(migrations, "steps", lambda: [*steps, *texts])

    return become


def migrate(url: str, node: str = "") -> migrations.Schema:
    opened = database(url, now, node)
    opened.release()
    return opened.schema


def test_an_older_program_uses_a_store_whose_newer_steps_declare_it(url: str, newer: Callable[..., None]) -> None:
    newer(EXPAND)
    assert migrate(url) == (NEXT, KNOWN)
    newer()
    hold_a_talk(url)
    assert migrate(url) == (NEXT, KNOWN)


def test_a_step_that_declares_nothing_ends_older_programs(url: str, newer: Callable[..., None], tmp_path: Path) -> None:
    newer(EXPAND, BREAK)
    assert migrate(url) == (NEXT + 1, NEXT + 1)
    newer(EXPAND)
    before = state(url, tmp_path)
    with pytest.raises(Unavailable, match=rf"newer Roost \(schema {NEXT + 1}, this one knows {NEXT}\)"):
        database(url, now)
    assert state(url, tmp_path) == before


def test_what_one_release_adds_the_next_one_may_need(url: str, newer: Callable[..., None]) -> None:
    newer(EXPAND, CONTRACT)
    assert migrate(url) == (NEXT + 1, NEXT)
    newer(EXPAND)
    hold_a_talk(url)
    newer()
    with pytest.raises(Unavailable, match="newer Roost"):
        database(url, now)


def test_a_step_never_lets_older_programs_in_again(url: str, newer: Callable[..., None]) -> None:
    newer("-- Nothing older.\n", EXPAND)
    assert migrate(url) == (NEXT + 1, NEXT)


@pytest.mark.parametrize(
    ("text", "oldest"),
    [("-- oldest: 3\n", 3), ("-- oldest: 99\n", 7), ("-- Talks.\n-- oldest: 3\n", 7), ("-- oldest: x\n", 7), ("", 7)],
)
def test_only_the_first_line_declares_the_oldest_version(text: str, oldest: int) -> None:
    assert migrations.compatibility.declared(text, 7) == oldest


# --- while nodes are alive -----------------------------------------------------------------------


@pytest.fixture
def server(postgres: str) -> Iterator[str]:
    with fresh_store(postgres) as made:
        yield made


@contextmanager
def node(url: str, name: str, seconds: float = 100.0, schema: int = KNOWN) -> Iterator[Driven]:
    host = ThreadHost()
    engine = Engine(host, database(url, host.clock.now, name), queued=100)
    store = Driven(engine)
    try:
        store.write(nodes.join, NewNode(name, name, "", "0.9", (), schema), seconds)
        yield store
    finally:
        engine.close()


@pytest.mark.postgres
def test_a_step_that_older_nodes_work_with_is_applied_while_they_do(server: str, newer: Callable[..., None]) -> None:
    with node(server, "node_a") as old:
        newer(EXPAND)
        assert migrate(server, "node_b") == (NEXT, KNOWN)
        assert old.read(nodes.listed)[0].node_id == "node_a"
        newer()
        with node(server, "node_c"):
            assert len(old.read(nodes.listed)) == 2


@pytest.mark.postgres
@pytest.mark.parametrize("steps", [(BREAK,), (EXPAND, BREAK), (BREAK, EXPAND)])
def test_a_step_that_older_nodes_do_not_work_with_waits_until_they_are_gone(
    server: str, newer: Callable[..., None], tmp_path: Path, steps: tuple[str, ...]
) -> None:
    with node(server, "node_a") as old:
        newer(*steps)
        before = state(server, tmp_path)
        with pytest.raises(Unavailable, match=r"'node_a' \(0.9\)\. Stop all of them first"):
            database(server, now, "node_b")
        assert state(server, tmp_path) == before
        old.write(nodes.leave, "node_a")
        assert migrate(server, "node_b").version == KNOWN + len(steps)


@pytest.mark.postgres
def test_a_node_that_knows_enough_is_no_obstacle(server: str, newer: Callable[..., None]) -> None:
    newer(EXPAND)
    with node(server, "node_a", schema=NEXT):
        newer(EXPAND, CONTRACT)
        assert migrate(server, "node_b") == (NEXT + 1, NEXT)


@pytest.mark.postgres
def test_a_frozen_older_node_is_disconnected_and_cannot_come_back(server: str, newer: Callable[..., None]) -> None:
    with node(server, "node_a", seconds=0.0) as frozen:
        newer("-- Nothing older.\n")
        assert migrate(server, "node_b") == (NEXT, NEXT)
        newer()
        with pytest.raises(Unavailable):
            frozen.write(nodes.cluster_id, "cluster_x")
        with psycopg.connect(server) as connection:
            assert connection.execute("SELECT count(*) FROM meta WHERE name = 'cluster'").fetchone() == (0,)


@pytest.mark.postgres
def test_an_older_node_does_not_join_after_a_step_that_it_does_not_know(
    server: str, newer: Callable[..., None]
) -> None:
    migrating = PostgresConnection(server, read_only=False)
    host = ThreadHost()
    engine = Engine(host, database(server, host.clock.now, "node_a"), queued=100)
    with ThreadPoolExecutor(1) as threads:
        try:
            migrating.begin()
            migrations.compatibility.refuse_older_nodes(migrating, KNOWN, NEXT)
            late = NewNode("node_a", "late", "", "0.9", (), KNOWN)
            joining = threads.submit(Driven(engine).write, nodes.join, late, 100.0)
            eventually(lambda: waiting(server) == 1)
            migrating.write("UPDATE meta SET value = '999' WHERE name IN ('schema', 'oldest')")
            migrating.commit()
            with pytest.raises(Unavailable, match="migrated by a newer Roost"):
                joining.result(20)
        finally:
            migrating.close()
            engine.close()


def waiting(url: str) -> int:
    """Return how many connections wait for a lock."""
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        ).fetchone()
    assert row is not None
    return int(row[0])
