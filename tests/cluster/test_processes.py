"""C2–C4 with real processes: nodes that are killed, frozen or drained lose nothing and double nothing."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from roost.client import RemoteService
from tests.cluster.ledger import Freeze, overlap
from tests.cluster.processes import Cluster, cluster
from tests.conftest import eventually
from tests.servers import fresh_store

pytestmark = [pytest.mark.postgres, pytest.mark.journey]
TASKS = 60
COUNTED = "".join(f"{number} " for number in range(40))


@pytest.fixture
def three(tmp_path: Path, postgres: str) -> Iterator[Cluster]:
    with fresh_store(postgres) as store, cluster(tmp_path, store, "a", "b", "c") as made:
        with made.nodes["a"].connect() as service:
            eventually(lambda: len(service.nodes.list("ann")) == 3)
        yield made


def send_tasks(made: Cluster, name: str, count: int, start: int = 0) -> list[str]:
    """Send tasks through one node to ten agents; return their ids."""
    with made.nodes[name].connect() as service:
        return [
            service.tasks.send("ann", f"agent:d{number % 10}", f"t{number}", key=f"key {number}")
            for number in range(start, start + count)
        ]


def create_agents(made: Cluster) -> None:
    with made.nodes["a"].connect() as service:
        for number in range(10):
            service.agents.create("ann", f"d{number}", profile="worker")


def check_all_done(made: Cluster, name: str, task_ids: list[str]) -> None:
    with made.nodes[name].connect() as service:
        tasks = [service.tasks.wait("ann", task_id, timeout=60) for task_id in task_ids]
    assert Counter(str(task.status) for task in tasks) == {"done": len(task_ids)}
    assert len({task.task_id for task in tasks}) == len(task_ids)


def test_a_killed_node_loses_nothing_and_others_work_on_within_seconds(three: Cluster) -> None:
    create_agents(three)
    ids = send_tasks(three, "a", TASKS)
    with three.nodes["b"].connect() as service:
        talk = service.create_talk_session("ann", profile="counting")
        service.add_message("ann", talk, "go")
    three.nodes["b"].kill()
    killed = time.monotonic()
    ids += send_tasks(three, "c", TASKS, start=TASKS)
    check_all_done(three, "a", ids)
    with three.nodes["c"].connect() as service:
        eventually(lambda: service.get_messages("ann", talk).messages[-1].status == "complete")
        text = service.get_messages("ann", talk).messages[-1].content
    assert text == COUNTED
    assert time.monotonic() - killed < 30
    assert three.rows("SELECT max(attempts), count(*) FROM dead_letters") == [(None, 0)]


@pytest.mark.parametrize("frozen_with", ["child", pytest.param("nothing", marks=pytest.mark.soak)])
def test_a_frozen_node_is_taken_over_and_changes_nothing_when_it_thaws(three: Cluster, frozen_with: str) -> None:
    with three.nodes["a"].connect() as service:
        talk = service.create_talk_session("ann", profile="burning")
        service.add_message("ann", talk, "x")
        eventually(lambda: len(service.get_messages("ann", talk).messages) == 2)
    frozen = three.nodes["a"]
    pids = [frozen.process.pid, *(frozen.children() if frozen_with == "child" else [])]
    start = time.clock_gettime(time.CLOCK_BOOTTIME)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    with three.nodes["b"].connect() as service:
        eventually(lambda: frozen.name not in [node.name for node in service.nodes.list("ann")])
        eventually(lambda: len({pid for _, pid, _ in three.ledger()}) == 2)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        thawed = Freeze(frozen.process.pid, start, time.clock_gettime(time.CLOCK_BOOTTIME))
        eventually(lambda: len(service.nodes.list("ann")) == 3)  # it has started anew
        receipt = service.stop("ann", talk, wait=20)
        assert receipt.quiesced is not None
        stored = service.get_messages("ann", talk).messages
    # A thawed process may go on until it notices that its lease has ended; nothing of that is stored.
    assert overlap(three, [thawed]) == 0.0
    assert [str(message.status) for message in stored][-1] == "interrupted"


def test_a_drained_node_leaves_and_its_work_continues_elsewhere(three: Cluster) -> None:
    create_agents(three)
    ids = send_tasks(three, "a", TASKS)
    with three.nodes["a"].connect() as service:  # nodes report their load with each renewal
        eventually(lambda: sum(node.load.awake for node in service.nodes.list("ann")) == 10)
    shown = three.command(three.nodes["a"], "nodes").splitlines()
    assert shown[0].split() == ["ID", "NAME", "STATE", "AWAKE", "ROOM", "CPU", "STARTED", "LEASE", "VERSION"]
    assert sorted(line.split()[1:3] for line in shown[1:]) == [["a", "up"], ["b", "up"], ["c", "up"]]
    assert sum(int(line.split()[3]) for line in shown[1:]) == 10, "all agents are awake"
    assert three.command(three.nodes["a"], "drain", "c").startswith("c (")
    assert three.nodes["c"].process.wait(30) == 0
    left = json.loads(three.command(three.nodes["b"], "nodes", "--json"))
    assert sorted((node["name"], node["state"]) for node in left) == [("a", "up"), ("b", "up")]
    ids += send_tasks(three, "b", TASKS, start=TASKS)
    check_all_done(three, "a", ids)
    begun = Counter(words[1] for _, _, words in three.ledger() if words[0] == "end")
    assert set(begun.values()) == {1}, "nothing ran twice"
    assert three.rows("SELECT count(*) FROM inbox WHERE suspect > 0") == [(0,)]


@pytest.mark.parametrize("stopped", ["process", "child"])
def test_a_node_that_cannot_renew_its_lease_stops_before_others_take_over(three: Cluster, stopped: str) -> None:
    with three.nodes["a"].connect() as service:
        talk = service.create_talk_session("ann", profile="burning")
        service.add_message("ann", talk, "x")
        eventually(lambda: len(service.get_messages("ann", talk).messages) == 2)
    [child] = three.nodes["a"].children()
    number = signal.SIGSTOP if stopped == "child" else signal.SIGKILL
    os.kill(child if stopped == "child" else three.nodes["a"].process.pid, number)
    with three.nodes["b"].connect() as service:
        eventually(lambda: len({pid for _, pid, _ in three.ledger()}) == 2)
        assert service.stop("ann", talk, wait=20).quiesced is not None
    if stopped == "child":
        os.kill(child, signal.SIGCONT)
    assert overlap(three) == 0.0


def test_nodes_work_on_without_nats_and_again_with_it(three: Cluster) -> None:
    create_agents(three)
    three.nats.kill()
    check_all_done(three, "b", send_tasks(three, "a", TASKS))
    with three.nodes["a"].connect() as first, three.nodes["b"].connect() as second:
        talk = first.create_talk_session("ann", profile="counting")
        first.add_message("ann", talk, "go")
        assert answer(second, talk) == COUNTED
        three.nats.restart()
        check_all_done(three, "c", send_tasks(three, "a", TASKS, start=TASKS))
        first.add_message("ann", talk, "again")
        assert answer(second, talk) == COUNTED


def answer(service: RemoteService, talk: str) -> str:
    """Return the newest answer, as it is streamed."""
    newest = service.get_messages("ann", talk).messages[-1].seq
    changes = service.stream_messages("ann", talk)
    return "".join(one.text for one in changes if one.message.sender == "agent" and one.message.seq >= newest)
