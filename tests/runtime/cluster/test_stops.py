"""T4 in a cluster: a stop on another node ends the run, and its receipt tells no more than is known."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conftest import eventually, everything, settled
from tests.runtime.cluster.brains import echo, endless, silent
from tests.runtime.cluster.conftest import Nodes

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize("cut", [0, 1])
def test_a_stop_without_transport_ends_the_run_and_acknowledges_nothing(nodes: Nodes, cut: int) -> None:
    started = nodes.start({"silent": silent}, 2)
    first, second = started
    talk = first.create_talk_session("ann", profile="silent")
    first.add_message("ann", talk, "go")
    eventually(lambda: first.roost.placement.run_of(talk))
    nodes.network.cut.add(nodes.id_of(started[cut]))
    receipts = [second.stop("ann", talk) for _ in range(2)]
    assert [(one.acknowledged, one.quiesced) for one in receipts] == [(None, None)] * 2
    eventually(lambda: first.roost.placement.run_of(talk) is None, 5)


def test_after_a_stop_on_another_node_nothing_runs_on_any_node(nodes: Nodes) -> None:
    started = nodes.start({"silent": silent}, 3)
    talk = started[0].create_talk_session("ann", profile="silent")
    for _ in range(5):
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(lambda n: started[n % 3].add_message("ann", talk, f"m{n}"), range(6)))
        receipt = started[2].stop("ann", talk, wait=5)
        assert receipt.quiesced is not None
        assert all(not node.get_messages("ann", talk).running for node in started)
        assert started[0].roost.placement.run_of(talk) is None


def test_a_late_copy_of_a_stop_does_not_stop_the_next_run(nodes: Nodes) -> None:
    copies: list[tuple[Callable[[bytes], None], bytes]] = []

    def carry(receive: Callable[[bytes], None], message: bytes) -> None:
        if b'"stop","ann"' in message:
            copies.append((receive, message))
        receive(message)

    nodes.network.carry = carry
    first, second = nodes.start({"endless": endless, "echo": echo}, 2)
    talk = first.create_talk_session("ann", profile="endless")
    first.add_message("ann", talk, "one")
    eventually(lambda: len(second.get_messages("ann", talk).messages) == 2)
    second.stop("ann", talk, wait=5)
    first.add_message("ann", talk, "two")
    run = eventually(lambda: first.roost.placement.run_of(talk))
    for receive, message in copies:
        receive(message)
    other = first.create_talk_session("ann", profile="echo")
    second.add_message("ann", other, "after it")
    settled(second, "ann", other)
    assert run is not None
    assert not run.fenced
    assert first.roost.placement.run_of(talk) is run
    first.stop("ann", talk, wait=5)
    assert [str(m.status) for m in everything(second, "ann", talk)][1:] == ["interrupted", "complete", "interrupted"]
