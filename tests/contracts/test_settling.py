"""A11: what a try leaves behind is written once, or not at all, whoever else writes at the same moment."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from roost.core.envelopes import Envelope, Kind, SendTask, Verdict, WorkClosing, WorkSettled
from roost.core.priority import Priority
from roost.core.tasks import Task
from roost.ports import Tx
from roost.stores.statements import inbox, tasks
from tests.conftest import eventually
from tests.contracts.conftest import Driven
from tests.contracts.test_event_statements import create
from tests.servers import fresh_database

pytestmark = pytest.mark.postgres


@pytest.fixture
def url(postgres: str) -> Iterator[str]:
    with fresh_database(postgres) as made:
        yield made


def test_a_task_that_is_cancelled_while_its_end_is_written_is_not_done(store: Driven, url: str) -> None:
    task = Envelope(
        "task_1", create(store, "d"), Kind.TASK, "task_1", Priority.NORMAL, "user:ann", "do it", 1.0, 1.0, attempts=1,
        recorded=True,
    )  # fmt: skip
    store.write(inbox.post, SendTask(task))
    may_end, settled = threading.Event(), list[WorkSettled]()

    def cancel(tx: Tx) -> Task:
        done = tasks.cancel(tx, "ann", "task_1", 2.0)
        assert may_end.wait(10.0)
        return done

    def settle() -> None:
        settled.extend(store.write(inbox.settle, (WorkClosing("run_1", task, 0, Verdict.DONE, "done", 1.0, 3.0),)))

    cancelling = threading.Thread(target=lambda: store.write(cancel, key="another writer"))
    settling = threading.Thread(target=settle)
    with psycopg.connect(url, autocommit=True) as admin:
        idle = "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'UPDATE tasks%' AND state = 'idle in transaction'"
        blocked = "SELECT 1 FROM pg_locks WHERE NOT granted"
        cancelling.start()
        eventually(lambda: admin.execute(idle).fetchone() is not None)
        settling.start()
        eventually(lambda: admin.execute(blocked).fetchone() is not None)
    may_end.set()
    cancelling.join()
    settling.join()
    assert [one.taken for one in settled] == [False]
    assert store.read(tasks.get, "ann", "task_1").status == "cancelled"
