"""PostgreSQL that is stopped and started again under a cluster: nothing acknowledged is lost."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from roost.client import RemoteService
from tests.cluster.processes import Cluster, cluster
from tests.conftest import eventually
from tests.servers import PostgresServer, fresh_store, restartable_postgres

pytestmark = [pytest.mark.postgres, pytest.mark.journey]
COUNTED = "".join(f"{number} " for number in range(40))
TASKS = 30


@contextmanager
def own_server(folder: Path, lease: float) -> Iterator[tuple[PostgresServer, Cluster]]:
    with (
        restartable_postgres() as server,
        fresh_store(server.url) as store,
        cluster(folder, store, "a", "b", "c", lease=lease) as made,
    ):
        with made.nodes["a"].connect() as service:
            eventually(lambda: len(service.nodes.list("ann")) == 3)
            for number in range(6):
                service.agents.create("ann", f"d{number}", profile="mailer")
        yield server, made


def send_tasks(made: Cluster, name: str, start: int) -> list[str]:
    with made.nodes[name].connect() as service:
        numbers = range(start, start + TASKS)
        return [service.tasks.send("ann", f"agent:d{n % 6}", f"t{n}", key=f"key {n}") for n in numbers]


def stop_for(server: PostgresServer, seconds: float) -> None:
    server.stop()
    threading.Event().wait(seconds)
    server.start()


def check_mailed_once(made: Cluster, service: RemoteService, task_ids: list[str]) -> None:
    assert {str(service.tasks.wait("ann", task_id, timeout=60).status) for task_id in task_ids} == {"done"}
    mailed = Counter(row[0] for row in made.rows("SELECT subject FROM mail WHERE recipient = 'user:ann'"))
    assert mailed == dict.fromkeys((f"t{n}" for n in range(len(task_ids))), 1)


@pytest.mark.soak
@pytest.mark.timeout(120)
def test_a_database_that_is_down_for_seconds_cancels_nothing(tmp_path: Path) -> None:
    with own_server(tmp_path, lease=12.0) as (server, made):
        with made.nodes["a"].connect() as service:
            before = {node.node_id for node in service.nodes.list("ann")}
            talk = service.create_talk_session("ann", profile="counting")
            service.add_message("ann", talk, "go")
        task_ids = send_tasks(made, "b", 0)
        stop_for(server, 3.0)
        eventually(made.is_whole, 60)
        task_ids += send_tasks(made, "c", TASKS)
        with made.nodes["b"].connect() as service:
            eventually(lambda: service.get_messages("ann", talk).messages[-1].status == "complete")
            assert service.get_messages("ann", talk).messages[-1].content == COUNTED
            check_mailed_once(made, service, task_ids)
            assert {node.node_id for node in service.nodes.list("ann")} == before
        assert made.rows("SELECT count(*) FROM runs WHERE outcome = 'lost'") == [(0,)]


@pytest.mark.parametrize(("lease", "seconds"), [(1.5, 8.0), pytest.param(12.0, 30.0, marks=pytest.mark.soak)])
@pytest.mark.timeout(180)
def test_nodes_start_anew_after_a_database_was_down_for_longer_than_their_lease(
    tmp_path: Path, lease: float, seconds: float
) -> None:
    with own_server(tmp_path, lease) as (server, made):
        with made.nodes["a"].connect() as service:
            before = {node.node_id for node in service.nodes.list("ann")}
        task_ids = send_tasks(made, "b", 0)
        stop_for(server, seconds)
        eventually(made.is_whole, 60)
        task_ids += send_tasks(made, "c", TASKS)
        with made.nodes["a"].connect() as service:
            check_mailed_once(made, service, task_ids)
            assert not before & {node.node_id for node in service.nodes.list("ann")}
