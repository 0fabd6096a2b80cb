"""Nodes that are cut off from PostgreSQL or NATS: no turn runs twice at once, and nothing is lost."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from roost.client import RemoteService
from roost.errors import RoostError
from tests.cluster.ledger import last_run, overlap
from tests.cluster.network import REPLIES, REQUESTS
from tests.cluster.processes import Cluster, cluster
from tests.conftest import eventually
from tests.servers import fresh_store

pytestmark = [pytest.mark.postgres, pytest.mark.journey]
LEASE = 3.0
COUNTED = "".join(f"{number} " for number in range(40))
TASKS = 20
PATIENT = {name: {"ROOST_LIMITS__ATTEMPTS": "1000"} for name in ("a", "b", "c")}
"""Variables of nodes on which a turn may be lost more often than it would be tried."""
SLOW = 8.0
"""Seconds that a busy machine may need in addition."""


@pytest.fixture
def three(tmp_path: Path, postgres: str) -> Iterator[Cluster]:
    with fresh_store(postgres) as store, cluster(tmp_path, store, "a", "b", "c", lease=LEASE, linked=True) as made:
        with made.nodes["a"].connect() as service:
            eventually(lambda: len(service.nodes.list("ann")) == 3)
            for number in range(6):
                service.agents.create("ann", f"d{number}", profile="mailer")
        yield made


def start_burning(made: Cluster, name: str) -> str:
    """Start a turn without an end on this node; return its talk."""
    with made.nodes[name].connect() as service:
        talk = service.create_talk_session("ann", profile="burning")
        service.add_message("ann", talk, "x")
        eventually(lambda: len(service.get_messages("ann", talk).messages) == 2)
    return talk


def runs(made: Cluster) -> dict[str, tuple[float, float]]:
    """Return when each run of the turn began and ended, in this order."""
    spans: dict[str, tuple[float, float]] = {}
    for when, _, words in made.ledger():
        if words[0] == "beat":
            spans[words[2]] = spans.get(words[2], (when, when))[0], when
    return spans


def send_tasks(service: RemoteService, *numbers: int) -> list[str]:
    return [service.tasks.send("ann", f"agent:d{n % 6}", f"t{n}", key=f"key {n}") for n in numbers]


def ids(service: RemoteService) -> dict[str, str]:
    return {node.name: node.node_id for node in service.nodes.list("ann")}


def check_mailed_once(made: Cluster, service: RemoteService, task_ids: list[str]) -> None:
    for task_id in task_ids:
        assert str(service.tasks.wait("ann", task_id, timeout=60).status) == "done"
    mailed = Counter(row[0] for row in made.rows("SELECT subject FROM mail WHERE recipient = 'user:ann'"))
    assert mailed == dict.fromkeys((f"t{n}" for n in range(len(task_ids))), 1)


def refusal(made: Cluster, name: str) -> tuple[float, str]:
    """Send a task to a node that is cut off; return how long it took, and the error."""
    start = time.monotonic()
    with made.nodes[name].connect(patience=1.0) as service, pytest.raises((RoostError, OSError)) as caught:
        service.tasks.send("ann", "agent:d0", "refused", key="refused")
    return time.monotonic() - start, str(caught.value)


@pytest.mark.parametrize(
    "directions",
    [
        (REQUESTS, REPLIES),
        pytest.param((REQUESTS,), marks=pytest.mark.soak),
        pytest.param((REPLIES,), marks=pytest.mark.soak),
    ],
)
@pytest.mark.timeout(120)
def test_a_node_that_is_cut_off_from_the_database_stops_before_others_take_over(
    three: Cluster, directions: tuple[str, ...]
) -> None:
    talk = start_burning(three, "a")
    with three.nodes["b"].connect() as service:
        before = ids(service)
        task_ids = send_tasks(service, *range(TASKS))
        cut = time.clock_gettime(time.CLOCK_BOOTTIME)
        three.links["a", "postgres"].cut(*directions)
        seconds, error = refusal(three, "a")
        eventually(lambda: len(runs(three)) == 2, LEASE + 2 + SLOW)
        task_ids += send_tasks(service, *range(TASKS, 2 * TASKS))
        (_, ended), (taken, _) = runs(three).values()
        three.links["a", "postgres"].heal()
        eventually(lambda: len(ids(service)) == 3, 60)
        after = ids(service)
        assert (after["a"] != before["a"], after["b"], after["c"]) == (True, before["b"], before["c"])
        check_mailed_once(three, service, task_ids)
        assert service.stop("ann", talk, wait=20).quiesced is not None
    print(f"stopped {ended - cut:.2f} s after the cut, taken over after {taken - cut:.2f} s")
    print(f"refused in {seconds:.1f} s: {error}")
    assert overlap(three) == 0.0
    assert ended - cut <= LEASE
    assert taken - cut < LEASE + 2 + SLOW
    assert seconds < 20
    assert "roost" in error.lower() or "database" in error or "reach" in error


@pytest.mark.soak
@pytest.mark.timeout(180)
def test_a_node_whose_connection_flaps_runs_nothing_twice_at_once(three: Cluster) -> None:
    talk, link = start_burning(three, "a"), three.links["a", "postgres"]
    with three.nodes["b"].connect() as service:
        task_ids = []
        for number in range(10):
            link.cut()
            task_ids += send_tasks(service, *range(number * 4, number * 4 + 4))
            threading.Event().wait(1.0)
            link.heal()
            threading.Event().wait(1.0)
        eventually(lambda: len(ids(service)) == 3, 60)
        check_mailed_once(three, service, task_ids)
        eventually(lambda: service.stop("ann", talk, wait=20).quiesced is not None)
    assert overlap(three) == 0.0


@pytest.mark.soak
@pytest.mark.timeout(180)
def test_nodes_work_on_while_one_is_cut_off_from_nats(three: Cluster) -> None:
    with three.nodes["a"].connect() as cut_off, three.nodes["b"].connect() as other:
        before = ids(other)
        three.links["a", "nats"].cut()
        task_ids = send_tasks(cut_off, *range(TASKS))
        task_ids += send_tasks(other, *range(TASKS, 2 * TASKS))
        talk = cut_off.create_talk_session("ann", profile="counting")
        cut_off.add_message("ann", talk, "go")
        eventually(lambda: other.get_messages("ann", talk).messages[-1].status == "complete")
        assert other.get_messages("ann", talk).messages[-1].content == COUNTED
        three.links["a", "nats"].heal()
        task_ids += send_tasks(cut_off, *range(2 * TASKS, 3 * TASKS))
        check_mailed_once(three, other, task_ids)
        assert ids(other) == before


@pytest.mark.soak
@pytest.mark.timeout(180)
def test_connections_that_are_dropped_in_silence_do_not_cost_the_lease(tmp_path: Path, postgres: str) -> None:
    with (
        fresh_store(postgres) as store,
        cluster(tmp_path, store, "a", "b", lease=12.0, linked=True) as made,
        made.nodes["b"].connect() as service,
    ):
        eventually(lambda: len(ids(service)) == 2)
        before = ids(service)
        made.links["a", "postgres"].drop()
        threading.Event().wait(14.0)  # longer than the lease
        assert ids(service) == before


@pytest.mark.parametrize("cuts", [pytest.param(100, marks=pytest.mark.soak)])
@pytest.mark.timeout(1_500)
def test_no_turn_runs_twice_at_once_however_often_its_node_is_cut_off(tmp_path: Path, postgres: str, cuts: int) -> None:
    dice = random.Random(cuts)
    with (
        fresh_store(postgres) as store,
        cluster(tmp_path, store, *PATIENT, lease=1.5, linked=True, environment=PATIENT) as made,
    ):
        start_burning(made, "a")
        for _ in range(cuts):
            before = last_run(made)
            [(name,)] = made.rows("SELECT n.name FROM talks t JOIN nodes n ON n.node_id = t.node")
            made.links[str(name), "postgres"].cut(*dice.choice(((), (REQUESTS,), (REPLIES,))))
            eventually(lambda before=before: last_run(made) != before)  # type: ignore[misc]
            made.links[str(name), "postgres"].heal()
            up = "SELECT count(*) FROM nodes WHERE state = 'up' AND lease > roost_now()"
            eventually(lambda up=up: made.rows(up) == [(3,)], 60)  # type: ignore[misc]
        print(f"{cuts} cuts, {len(runs(made))} runs, overlap {overlap(made)}")
        assert len(runs(made)) > cuts
        assert overlap(made) == 0.0
