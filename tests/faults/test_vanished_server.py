"""PostgreSQL vanishes without a word: no packet comes back. That is noticed in seconds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import psycopg
import pytest

from roost.hosts.threads import ThreadHost
from roost.ports import Tx
from roost.stores.engine import Engine
from roost.stores.postgres_connection import REPLY_TIMEOUT, PostgresConnection
from roost.wiring import database
from tests.conftest import ENVIRONMENT, eventually
from tests.contracts.conftest import Driven
from tests.servers import ROOT, fresh_store, missing

pytestmark = pytest.mark.postgres
LIMIT = 9.0
"""Seven seconds, and some for a busy machine. It is less than the limit for a server that hangs."""


@pytest.fixture
def url(postgres: str) -> Iterator[str]:
    with fresh_store(postgres) as made:
        yield made


@pytest.mark.timeout(60)
def test_a_vanished_server_is_noticed_in_seven_seconds(url: str) -> None:
    command = [sys.executable, "-m", "tests.faults.driver_vanished_server", url]
    done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=50)
    if "no network of its own" in done.stderr:
        missing(f"A new network needs root, or user namespaces: {done.stderr}")
    assert done.returncode == 0, done.stderr
    times = json.loads(done.stdout)
    assert set(times) == {"waiting", "sending"}
    assert max(times.values()) < LIMIT < REPLY_TIMEOUT, times


def test_a_transaction_of_a_frozen_process_is_ended_by_the_server(url: str) -> None:
    connection = PostgresConnection(url, read_only=False)
    row = connection.one("SELECT current_setting('idle_in_transaction_session_timeout')")
    connection.close()
    assert row == ("5s",)


def test_a_write_whose_transaction_was_ended_for_idling_is_repeated(url: str) -> None:
    host = ThreadHost()
    store = Driven(Engine(host, database(url, host.clock.now), queued=100))
    attempts: list[int] = []

    def freeze(tx: Tx) -> None:
        row = tx.one("SELECT pg_backend_pid()")
        assert row is not None
        attempts.append(row[0])
        if len(attempts) == 1:
            tx.write("SET LOCAL idle_in_transaction_session_timeout = '50ms'")
            tx.one("SELECT 1")  # waits until both are executed
            with psycopg.connect(url, autocommit=True) as admin:
                there = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
                eventually(lambda: admin.execute(there, [row[0]]).fetchone() is None)
        tx.write("INSERT INTO meta (name, value) VALUES ('frozen', 'once') RETURNING name")  # before the commit

    store.write(freeze)
    store.engine.close()
    assert len(set(attempts)) == 2
