"""States of agents in a cluster: the same answer from every node."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator

import pytest

from roost.core.agents.agent import State
from roost.core.monitoring.health import AgentHealth
from roost.ports import Turn
from roost.service import AgentService
from tests.conftest import eventually
from tests.runtime.cluster.brains import echo, until
from tests.runtime.cluster.conftest import Nodes

pytestmark = pytest.mark.postgres


class Working:
    """Brains that work until the test ends."""

    def __init__(self) -> None:
        self.opened = threading.Event()

    async def __call__(self, turn: Turn) -> AsyncIterator[str]:
        await until(self.opened)
        yield "done"


def _busy(nodes: Nodes, count: int = 6) -> tuple[list[AgentService], Working, list[str]]:
    """Start nodes with busy agents on at least two of them, and return the tasks."""
    working = Working()
    started = nodes.start({"works": working}, 3)
    tasks = []
    for number in range(count):
        started[0].agents.create("ann", f"d{number}", profile="works")
        tasks.append(started[number % 3].tasks.send("ann", f"d{number}", "work"))
    eventually(lambda: sum(len(one.works) for node in started for one in node.roost.dispatcher.all()) == count)
    assert sum(node.roost.dispatcher.count > 0 for node in started) >= 2
    return started, working, tasks


def test_every_node_lists_what_agents_do_on_all_of_them(nodes: Nodes) -> None:
    started, working, tasks = _busy(nodes)
    try:
        for node in started:
            states = node.monitor.states("ann")
            assert [one.current_task for one in states.values()] == tasks
            assert {(one.state, one.health, one.heartbeat is None) for one in states.values()} == {
                (State.ACTIVE, AgentHealth.ALIVE, False)
            }
            assert len(node.agents.list("ann", state="active")) == 6
            assert node.agents.list("ann", state="idle") == []
            report = node.agents.inspect("ann", "d3")
            assert [run.envelope_id for run in report.running] == [tasks[3]]
            assert (report.agent.state, dict(report.waiting)) == (State.ACTIVE, {})
    finally:
        working.opened.set()


@pytest.mark.parametrize("carried", [True, False])
def test_states_are_shown_without_an_answer_of_other_nodes(nodes: Nodes, carried: bool) -> None:
    started, working, _ = _busy(nodes)
    try:
        if carried:  # questions are lost
            nodes.network.carry = lambda receive, message: None
        else:
            nodes.network.cut |= {nodes.id_of(one) for one in started}
        before = time.monotonic()
        states = started[0].monitor.states("ann")
        assert time.monotonic() - before < 3.0
        here = {one.address for one in started[0].roost.dispatcher.all()}
        assert {f"ann/{name}" for name, one in states.items() if one.state is State.ACTIVE} == here
        assert len(states) == 6
    finally:
        nodes.network.cut.clear()
        working.opened.set()


def test_a_report_of_another_node_writes_no_change_of_state(nodes: Nodes) -> None:
    started, working, _ = _busy(nodes)
    try:
        eventually(lambda: started[0].agents.history("ann", "d0")[0].after is State.ACTIVE)
        nodes.network.cut |= {nodes.id_of(one) for one in started}
        for node in started:
            assert node.agents.inspect("ann", "d0").changes[0].after is State.ACTIVE
    finally:
        nodes.network.cut.clear()
        working.opened.set()


def test_a_profile_of_another_node_is_not_missing(nodes: Nodes) -> None:
    [first] = nodes.start({"echo": echo})
    first.agents.create("ann", "d", profile="echo")
    [second] = nodes.start({"other": echo})
    assert second.monitor.states("ann")["d"].health is AgentHealth.IDLE
