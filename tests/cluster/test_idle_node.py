"""Idle node: how rarely it wakes, and what it costs the database."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.cluster.processes import Cluster, cluster
from tests.conftest import eventually
from tests.servers import fresh_store

pytestmark = [pytest.mark.postgres, pytest.mark.journey]
WAKE_UPS, TRANSACTIONS = 55.0, 5.0
"""Per second, of all threads together."""
WATCHED = 3.0


def test_an_idle_node_wakes_rarely_and_asks_the_database_little(tmp_path: Path, postgres: str) -> None:
    with fresh_store(postgres) as store, cluster(tmp_path, store, "a", lease=12.0) as made:
        eventually(lambda: is_calm(*rates(made)), 60)  # it has just started


def is_calm(woken: float, asked: float) -> bool:
    print(f"{woken:.0f} wake-ups and {asked:.1f} transactions per second")
    return woken < WAKE_UPS and asked < TRANSACTIONS


def rates(made: Cluster) -> tuple[float, float]:
    """Return wake-ups of the node, and transactions of all, per second."""
    before = wake_ups(made.nodes["a"].process.pid), transactions(made)
    threading.Event().wait(WATCHED)
    after = wake_ups(made.nodes["a"].process.pid), transactions(made)
    return (after[0] - before[0]) / WATCHED, (after[1] - before[1]) / WATCHED


def wake_ups(pid: int) -> int:
    """Return how often threads of a process have waited."""
    found = [thread.joinpath("status").read_text() for thread in Path(f"/proc/{pid}/task").iterdir()]
    return sum(int(text.split("voluntary_ctxt_switches:", 1)[1].split()[0]) for text in found)


def transactions(made: Cluster) -> int:
    """Return how many transactions have ended in the database."""
    query = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
    return int(made.rows(query)[0][0])
