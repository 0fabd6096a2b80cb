"""A11: the result of an attempt is written once or not at all, whatever else is written concurrently."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from roost.core.envelopes.effects import SendTask
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.envelopes.tasks import Task
from roost.core.runs import Closing, Settled, Verdict
from roost.core.values.priority import Priority
from roost.ports import Tx
from roost.stores.sql import settlement, tasks
from roost.stores.sql.sending import effects
from tests.conftest import eventually
from tests.contracts.conftest import Driven
from tests.contracts.sql.test_events import create
from tests.servers import fresh_store

pytestmark = pytest.mark.postgres


@pytest.fixture
def url(postgres: str) -> Iterator[str]:
    with fresh_store(postgres) as made:
        yield made


def test_a_task_that_is_cancelled_while_its_end_is_written_is_not_done(store: Driven, url: str) -> None:
    address = create(store, "d")
    names = [f"task_{number}" for number in range(1, 8)]  # more than a few, which are counted first
    all_tasks = [
        Envelope(name, address, Kind.TASK, name, Priority.NORMAL, "user:ann", "do it", 1.0, 1.0, recorded=True)
        for name in names
    ]
    for task in all_tasks:
        store.write(effects.post, SendTask(task))
    may_end, settled = threading.Event(), list[Settled]()

    def cancel(tx: Tx) -> Task:
        done = tasks.cancel(tx, "ann", "task_1", 2.0)
        assert may_end.wait(10.0)
        return done

    def settle() -> None:
        closings = tuple(Closing(f"run_{e.lane}", e, 0, Verdict.DONE, "done", 1.0, 3.0) for e in all_tasks)
        settled.extend(store.write(settlement.settle, closings, key="tasks"))

    cancelling = threading.Thread(target=lambda: store.write(cancel, key="another writer"))
    settling = threading.Thread(target=settle)
    with psycopg.connect(url, autocommit=True) as admin:
        idle = "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'UPDATE tasks%' AND state = 'idle in transaction'"
        blocked = "SELECT 1 FROM pg_locks WHERE NOT granted"
        cancelling.start()
        eventually(lambda: admin.execute(idle).fetchone() is not None)
        eventually(lambda: store.engine._writers[0].is_blocked(time.monotonic()))  # others go to the second writer
        settling.start()
        eventually(lambda: admin.execute(blocked).fetchone() is not None)
    may_end.set()
    cancelling.join()
    settling.join()
    assert [one.taken for one in settled] == [False, *[True] * 6]
    assert store.read(tasks.get, "ann", "task_1").status == "cancelled"
