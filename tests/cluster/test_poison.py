"""A turn that kills its node: it becomes a dead letter after its attempts, and its neighbours are not harmed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.load import NAMES
from tests.cluster.processes import Cluster, cluster
from tests.conftest import eventually
from tests.servers import fresh_store

pytestmark = [pytest.mark.postgres, pytest.mark.journey]
NEIGHBOURS, TASKS, TALKS = 6, 4, 4
TAKEOVER = 10.0
"""Seconds after which lost work runs again: about one, in quarantine some more, and more on a busy machine."""


@contextmanager
def restarted(made: Cluster) -> Iterator[None]:
    """Start nodes again that have died, as a service manager does."""
    ending = threading.Event()

    def watch() -> None:
        while not ending.wait(0.1):
            for node in list(made.nodes.values()):
                if node.process.poll() is not None:
                    made.launch(node.name)

    thread = threading.Thread(target=watch, name="service manager")
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join(100)


@pytest.mark.parametrize(
    ("kind", "tries"), [("task", 1), *(pytest.param(kind, 2, marks=pytest.mark.soak) for kind in ("task", "talk"))]
)
@pytest.mark.timeout(240)
def test_a_turn_that_kills_its_node_is_given_up_and_its_neighbours_are_done_in_time(
    tmp_path: Path, postgres: str, kind: str, tries: int
) -> None:
    environment = {name: {"ROOST_LIMITS__ATTEMPTS": str(tries)} for name in NAMES}
    with fresh_store(postgres) as store, cluster(tmp_path, store, *NAMES, environment=environment) as made:
        with made.nodes["a"].connect() as service:
            eventually(made.is_whole, 60)
            names = [f"d{number}" for number in range(NEIGHBOURS)]
            service.agents.create_many("ann", names, profile="poison", max_attempts=1)
            service.agents.create("ann", "bad", profile="poison", max_attempts=tries)
            bad = service.create_talk_session("ann", profile="poison")
            for name in names:
                for number in range(TASKS):
                    service.tasks.send("ann", f"agent:{name}", f"{name}-{number}")
            talks = [service.create_talk_session("ann", profile="poison") for _ in range(TALKS)]
            for number, talk in enumerate(talks):
                service.add_message("ann", talk, f"said-{number}")
            if kind == "task":
                service.tasks.send("ann", "agent:bad", "poison")
            else:
                service.add_message("ann", bad, "poison")
        with restarted(made):
            given_up = "SELECT 1 FROM inbox UNION SELECT 1 FROM talks WHERE waiting > 0 OR answer_seq > 0"
            eventually(lambda: made.rows(given_up) == [], 120)
        letters = made.rows("SELECT address, fault, attempts FROM dead_letters")
        assert letters == ([("ann/bad", "lost_worker", tries)] if kind == "task" else [])
        answers = "SELECT talk_id, status, content FROM messages WHERE sender = 'agent' AND status <> 'interrupted'"
        of_bad = [(bad, "failed", "")] if kind == "talk" else []
        of_others = [(talk, "complete", f"did said-{number}") for number, talk in enumerate(talks)]
        assert sorted(made.rows(answers)) == sorted(of_bad + of_others)
        assert made.rows("SELECT DISTINCT status, attempts FROM tasks WHERE prompt <> 'poison'") == [("done", 1)]
        assert 2 + tries <= len(check_neighbours(made)) <= 3 + tries


def check_neighbours(made: Cluster) -> list[float]:
    """Check that each turn that was lost with its node ran again soon; return the times of the deaths."""
    ledger = made.ledger()
    deaths = {pid: when for when, pid, words in ledger if words[0] == "death"}
    begun = [(when, pid, words[2]) for when, pid, words in ledger if words[0] == "begin" and words[2] != "poison"]
    ended = {(pid, words[2]) for _, pid, words in ledger if words[0] == "end"}
    lost = [(deaths[pid], text) for _, pid, text in begun if (pid, text) not in ended]
    assert lost, "nothing ran beside it"
    for when, text in lost:
        again = min(time for time, _, other in begun if other == text and time > when)
        last = max(death for death in deaths.values() if death <= again)
        print(f"{text} ran again {again - when:.2f} s after its node had died")
        assert again - last < TAKEOVER
    return list(deaths.values())
