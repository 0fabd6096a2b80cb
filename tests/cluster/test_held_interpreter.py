"""C functions that hold the interpreter for longer than the pulse of a node, and for longer than its lease."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tests.cluster.ledger import Freeze, Noted, overlaps, runs
from tests.cluster.processes import Cluster, cluster
from tests.conftest import eventually
from tests.servers import fresh_store

pytestmark = [pytest.mark.postgres, pytest.mark.journey]
BYSTANDERS = 8
LEASE, HELD = 2.0, 6.0
BEATS = 300
"""Of a bystander, in six seconds or more: it still works when the interpreter is released."""
PAUSE = 2.0
"""Seconds between two beats of a turn that nothing delays, on a busy machine."""


@pytest.mark.soak
@pytest.mark.parametrize(("lease", "held", "is_lost"), [(12.0, 2.0, False), (2.0, 6.0, True)])
@pytest.mark.timeout(120)
def test_an_interpreter_that_is_held_costs_the_lease_only_after_its_length(
    tmp_path: Path, postgres: str, lease: float, held: float, is_lost: bool
) -> None:
    with fresh_store(postgres) as store, cluster(tmp_path, store, "a", "b", lease=lease) as made:
        with made.nodes["b"].connect() as service:
            eventually(lambda: len(service.nodes.list("ann")) == 2)
            before = {node.name: node.node_id for node in service.nodes.list("ann")}
        with made.nodes["a"].connect() as service:
            talk = service.create_talk_session("ann", profile="holding_once")
            service.add_message("ann", talk, str(held))
        eventually(
            lambda: made.rows(
                f"SELECT 1 FROM messages WHERE talk_id = '{talk}' AND status = 'complete' AND sender = 'agent'"
            ),
            60,
        )
        query = "SELECT count(*) FROM nodes WHERE state = 'up' AND lease > roost_now()"
        eventually(lambda: made.rows(query) == [(2,)], 60)
        with made.nodes["b"].connect() as service:
            after = {node.name: node.node_id for node in service.nodes.list("ann")}
            answers = [message.content for message in service.get_messages("ann", talk).messages[1:]]
        assert answers == [f"held {held}"]
        assert (after["a"] != before["a"]) is is_lost
        assert len(runs(made)) == (2 if is_lost else 1)


@pytest.mark.soak
@pytest.mark.timeout(180)
def test_turns_beside_a_held_interpreter_run_on_one_node_at_a_time_and_are_not_counted(
    tmp_path: Path, postgres: str
) -> None:
    with fresh_store(postgres) as store, cluster(tmp_path, store, "a", "b", lease=LEASE) as made:
        held_pid, other_pid = made.nodes["a"].process.pid, made.nodes["b"].process.pid
        with made.nodes["a"].connect() as service:
            eventually(made.is_whole, 60)
            service.agents.create_many("ann", [f"d{number}" for number in range(BYSTANDERS)], profile="beating")
            talk = service.create_talk_session("ann", profile="holding_once")
            near = service.create_talk_session("ann", profile="beating")
            service.add_message("ann", near, str(BEATS))
            for number in range(BYSTANDERS):
                service.tasks.send("ann", f"agent:d{number}", str(BEATS))
            eventually(lambda: len({run.address for run in runs(made)}) == BYSTANDERS + 1)
            service.add_message("ann", talk, str(HELD))
        open_work = "SELECT 1 FROM inbox UNION SELECT 1 FROM talks WHERE waiting > 0 OR answer_seq > 0"
        eventually(lambda: made.rows(open_work) == [], 90)
        freeze = held(made)
        assert freeze.pid == held_pid
        assert overlaps(made, [freeze]) == []
        by_address = {address: [run for run in runs(made) if run.address == address] for address in addresses(made)}
        lost = {address: found for address, found in by_address.items() if found[0].pid == held_pid}
        assert {talk, near} < lost.keys() < by_address.keys()
        for address, found in lost.items():
            check_taken_over(found, freeze, address)
        for address in by_address.keys() - lost.keys():
            check_undisturbed(made, address, other_pid)
        assert made.rows("SELECT DISTINCT status, attempts FROM tasks") == [("done", 1)]
        assert made.rows("SELECT reason FROM dead_letters") == []
        answers = made.rows("SELECT talk_id, content FROM messages WHERE sender = 'agent' AND status = 'complete'")
        assert sorted(answers) == sorted([(talk, f"held {HELD}"), (near, "beaten")])


def addresses(made: Cluster) -> set[str]:
    return {run.address for run in runs(made)}


def held(made: Cluster) -> Freeze:
    """Return when the interpreter was held."""
    [(start, pid, _)] = [one for one in made.ledger() if one[2][0] == "held"]
    [(end, _, _)] = [one for one in made.ledger() if one[2][0] == "released"]
    return Freeze(pid, start, end)


def check_taken_over(found: list[Noted], freeze: Freeze, address: str) -> None:
    """Check that another node repeated a turn while the interpreter was still held, as soon as the lease had ended."""
    first, again = found
    assert again.pid != first.pid
    assert freeze.start < again.start < freeze.end, f"{address} ran again {again.start - freeze.start:.2f} s later"


def check_undisturbed(made: Cluster, address: str, pid: int) -> None:
    """Check that a turn on the other node ran once, and without a pause."""
    beats = [(when, by, words[2]) for when, by, words in made.ledger() if words[:2] == ["beat", address]]
    assert len({(by, run) for _, by, run in beats}) == 1
    assert {by for _, by, _ in beats} == {pid}
    assert max(after[0] - before[0] for before, after in pairwise(beats)) < PAUSE
