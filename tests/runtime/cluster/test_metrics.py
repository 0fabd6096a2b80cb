"""Metrics of a cluster: the same answer from every node, and nodes that do not answer are named."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from roost.core.monitoring.metrics import MetricTotals
from roost.protocol.metrics import MetricList
from roost.service import AgentService
from tests.api.serving import serving
from tests.conftest import eventually
from tests.runtime.cluster.brains import echo
from tests.runtime.cluster.conftest import Nodes

pytestmark = pytest.mark.postgres

RUNS, SECONDS = "roost_runs_total", "roost_run_seconds"


def _worked(nodes: Nodes, count: int = 6) -> list[AgentService]:
    """Start three nodes, on at least two of which agents have worked."""
    started = nodes.start({"echo": echo}, 3)
    for number in range(count):
        started[0].agents.create("ann", f"d{number}", profile="echo")
        started[number % 3].tasks.send("ann", f"d{number}", "work")
    eventually(lambda: sum(_own(one) for one in started) == count)  # counted after the commit
    assert sum(_own(one) > 0 for one in started) >= 2
    return started


def _own(node: AgentService) -> float:
    return node.roost.monitor.own_metrics()[RUNS].value


def _by_node(found: MetricTotals) -> dict[str, float | None]:
    return {node.name: None if node.metrics is None else node.metrics[RUNS].value for node in found.nodes}


def test_every_node_knows_the_metrics_of_all(nodes: Nodes) -> None:
    started = _worked(nodes)
    expected = {f"node {number}": _own(one) for number, one in enumerate(started, 1)}
    for node in started:
        found = node.monitor.metrics()
        assert _by_node(found) == expected
        assert found.nodes[0].node_id == nodes.id_of(node)
        assert (found[RUNS].value, found[SECONDS].value, found.missing) == (6, 6, ())
        assert found[RUNS].values == {("task", "done"): 6}
        assert list(found) == list(node.roost.monitor.own_metrics())


def _lose(nodes: Nodes, started: list[AgentService]) -> None:
    nodes.network.carry = lambda receive, message: None if b'"metrics"' in message else receive(message)


def _cut(nodes: Nodes, started: list[AgentService]) -> None:
    nodes.network.cut |= {nodes.id_of(one) for one in started[1:]}


def _be_alone(nodes: Nodes, started: list[AgentService]) -> None:
    nodes.network.cut.add(nodes.id_of(started[0]))


@pytest.mark.parametrize("fail", [_lose, _cut, _be_alone])
def test_nodes_that_do_not_answer_are_named(nodes: Nodes, fail: Callable[[Nodes, list[AgentService]], None]) -> None:
    started = _worked(nodes)
    fail(nodes, started)
    before = time.monotonic()
    found = started[0].monitor.metrics()
    assert time.monotonic() - before < 3.0
    assert found.missing == ("node 2", "node 3")
    assert _by_node(found) == {"node 1": _own(started[0]), "node 2": None, "node 3": None}
    assert found[RUNS].value == _own(started[0])


def test_a_node_that_has_left_is_neither_counted_nor_missing(nodes: Nodes) -> None:
    started = _worked(nodes)
    started[2].close()
    eventually(lambda: "node 3" not in _by_node(started[0].monitor.metrics()))
    found = started[0].monitor.metrics()
    assert set(_by_node(found)) == {"node 1", "node 2"}
    assert found.missing == ()


def test_programs_read_all_nodes_and_prometheus_reads_each(nodes: Nodes) -> None:
    started = _worked(nodes)
    with serving(started[0]) as server, server.command_line() as program:
        found = MetricList.model_validate(program.get("/api/v1/metrics").json()).totals()
        nodes.network.cut.add(nodes.id_of(started[1]))
        partial = program.get("/api/v1/metrics").json()
        lines = program.get("/metrics").text.splitlines()
    assert (found[RUNS].value, len(found.nodes), found.missing) == (6, 3, ())
    assert found[SECONDS].value == 6
    assert (partial["missing"], partial["nodes"][1]["metrics"]) == (["node 2"], None)
    own = [float(line.split()[1]) for line in lines if line.startswith(f"{RUNS}{{")]
    assert sum(own) == _own(started[0])
