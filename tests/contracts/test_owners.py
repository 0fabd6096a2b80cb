"""Decision 0011: one program owns a PostgreSQL database, whichever of its connections are lost."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from roost.errors import Unavailable
from roost.hosts.threads import ThreadHost
from roost.stores.engine import Engine
from roost.wiring import database
from tests.contracts.conftest import Driven
from tests.servers import fresh_store

pytestmark = pytest.mark.postgres
_OTHERS = "FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'roost'"
CONNECTIONS = 3
"""One is held by the owner alone, one writes, one reads. More are opened when they are needed."""


@pytest.fixture
def url(postgres: str) -> Iterator[str]:
    with fresh_store(postgres) as made:
        yield made


def cut(url: str, which: str = "true") -> int:
    """End connections of Roost, from outside; how many."""
    with psycopg.connect(url, autocommit=True) as admin:
        return len(admin.execute(f"SELECT pg_terminate_backend(pid) {_OTHERS} AND {which}".encode()).fetchall())


def open_store(url: str) -> Driven:
    host = ThreadHost()
    store = Driven(Engine(host, database(url, host.clock.now), queued=100))
    store.read(lambda tx: tx.read("SELECT 1"))
    return store


def write(store: Driven, name: str) -> None:
    def put(tx: object) -> None:
        tx.write("INSERT INTO meta (name, value) VALUES (:name, '')", {"name": name})  # type: ignore[attr-defined]

    store.write(put, key=name)


def test_no_one_gets_in_while_a_connection_that_writes_is_left(url: str) -> None:
    store = open_store(url)
    owner = "pid = (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = 7052 LIMIT 1)"
    assert cut(url, owner) == 1
    with pytest.raises(Unavailable, match="in use by another Roost"):
        open_store(url)
    write(store, "still the owner")
    store.engine.close()


def test_one_that_lost_every_connection_is_the_owner_again_and_no_write_fails(url: str) -> None:
    store = open_store(url)
    assert cut(url) == CONNECTIONS
    for number in range(20):  # for every writer
        write(store, str(number))
    with pytest.raises(Unavailable, match="in use by another Roost"):
        open_store(url)
    store.engine.close()
    open_store(url).engine.close()


def test_one_that_was_cut_off_cannot_write_once_another_has_taken_over(url: str) -> None:
    first = open_store(url)
    assert cut(url) == CONNECTIONS
    second = open_store(url)
    for number in range(20):
        with pytest.raises(Unavailable):
            write(first, f"first {number}")
        write(second, f"second {number}")
    found = second.read(lambda tx: tx.read("SELECT name FROM meta WHERE name LIKE 'first%'"))
    assert found == []
    first.engine.close()
    second.engine.close()
