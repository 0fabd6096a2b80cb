"""A batch that waits for a lock of another process delays what belongs to it, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from roost.hosts.pending import drive
from roost.hosts.threads import ThreadHost
from roost.ports import Pending, Tx
from roost.stores.engine import Engine
from roost.stores.writer import BLOCKED
from roost.wiring import database
from tests.conftest import eventually
from tests.servers import fresh_store

pytestmark = pytest.mark.postgres


@pytest.fixture
def url(postgres: str) -> Iterator[str]:
    with fresh_store(postgres) as made:
        yield made


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    host = ThreadHost()
    made = Engine(host, database(url, host.clock.now), queued=10_000)
    yield made
    made.close()


def append(tx: Tx, name: str, word: str) -> None:
    tx.write(
        "INSERT INTO meta (name, value) VALUES (:name, :word)"
        " ON CONFLICT (name) DO UPDATE SET value = meta.value || :word",
        {"name": name, "word": word},
    )


def value(tx: Tx, name: str) -> str:
    return str(tx.read("SELECT value FROM meta WHERE name = ?", (name,))[0][0])


def wait(pending: Pending[None], seconds: float = 10.0) -> bool:
    async def run() -> bool:
        return await pending.within(seconds)

    return drive(run())


def is_waiting_for_a_lock(url: str) -> bool:
    with psycopg.connect(url, autocommit=True) as admin:
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        return admin.execute(query).fetchone() != (0,)


def test_a_blocked_batch_delays_only_what_belongs_to_it(url: str, engine: Engine) -> None:
    assert wait(engine.write(append, "a", "0", key="a"))
    with psycopg.connect(url) as other:
        other.execute("UPDATE meta SET value = value WHERE name = 'a'")
        blocked = engine.write(append, "a", "1", key="a")
        eventually(lambda: is_waiting_for_a_lock(url))
        assert not wait(blocked, 2 * BLOCKED)
        same = [engine.write(append, "a", str(number), key="a") for number in range(2, 10)]
        for number in range(50):
            assert wait(engine.write(append, f"other {number % 5}", "x", key=f"other {number % 5}"), 3.0)
        assert not blocked.done
        assert not any(pending.done for pending in same)
        other.rollback()
        assert wait(blocked)
        assert all(wait(pending) for pending in same)
    assert drive(_awaited(engine.read(value, "a"))) == "0123456789"


def test_writes_of_a_key_stay_in_order_when_the_first_writer_is_free_again(url: str, engine: Engine) -> None:
    for name in ("a", "b"):
        assert wait(engine.write(append, name, "", key=name))
    with psycopg.connect(url) as one, psycopg.connect(url) as two:
        one.execute("UPDATE meta SET value = value WHERE name = 'a'")
        two.execute("UPDATE meta SET value = value WHERE name = 'b'")
        blocked = engine.write(append, "a", "x", key="a")
        eventually(lambda: is_waiting_for_a_lock(url))
        assert not wait(blocked, 2 * BLOCKED)
        writes = [engine.write(append, "b", "0", key="b")]  # by the second writer, which waits too
        one.rollback()
        assert wait(blocked)
        writes += [engine.write(append, "b", str(number), key="b") for number in range(1, 10)]
        assert wait(engine.write(append, "c", "x", key="c"))  # the first writer is free
        assert not any(pending.done for pending in writes)
        two.rollback()
        assert all(wait(pending) for pending in writes)
    assert drive(_awaited(engine.read(value, "b"))) == "0123456789"


async def _awaited(pending: Pending[str]) -> str:
    return await pending


def test_connections_are_opened_when_they_are_needed(url: str, engine: Engine) -> None:
    def opened() -> int:
        with psycopg.connect(url, autocommit=True) as admin:
            own = "datname = current_database() AND application_name = 'roost'"
            return int(
                (admin.execute(f"SELECT count(*) FROM pg_stat_activity WHERE {own}".encode()).fetchone() or (0,))[0]
            )

    assert opened() == 2, "one says that the store is in use, one writes"
    for number in range(20):
        assert wait(engine.write(append, "a", str(number), key="a"))
        drive(_awaited(engine.read(value, "a")))
        drive(engine.heartbeat(0.0))
    assert opened() == 3
