"""Nodes on every store: leases by the clock of the database, and the work of those that are gone."""

from __future__ import annotations

import threading

import pytest

from roost.core.cluster.nodes import NewNode, Node, NodeLoad, NodeState
from roost.ports import Tx
from roost.stores.sql import held, nodes
from tests.contracts.conftest import Driven
from tests.contracts.sql.test_events import create

LONG = 1_000.0
ENDED = -1.0
"""Length of a lease that has ended when it begins."""


def join(store: Driven, name: str, seconds: float = LONG) -> str:
    node_id = f"node_{name}"
    store.write(nodes.join, NewNode(node_id, name, f"http://{name}", "1.0", ("echo", "b"), 32), seconds)
    return node_id


def only(store: Driven) -> Node:
    [node] = store.read(nodes.listed)
    found: Node = node
    return found


def give(store: Driven, node_id: str, *addresses: str) -> None:
    """Make agents belong to a node, as waking them there does."""

    def own(tx: Tx) -> None:
        for address in addresses:
            tx.write("UPDATE agents SET node = :node WHERE address = :address", {"node": node_id, "address": address})

    store.write(own)


def epochs(store: Driven) -> dict[str, tuple[str, int]]:
    def read(tx: Tx) -> dict[str, tuple[str, int]]:
        return {row[0]: (row[1], row[2]) for row in tx.read("SELECT address, node, epoch FROM agents")}

    found: dict[str, tuple[str, int]] = store.read(read)
    return found


def test_a_node_joins_with_a_lease_by_the_clock_of_the_database(store: Driven) -> None:
    now = store.write(nodes.join, NewNode("node_1", "one", "http://one", "1.0", ("echo", "b"), 32), 12.0)
    node = only(store)
    assert (node.name, node.url, node.version, node.profiles) == ("one", "http://one", "1.0", ("b", "echo"))
    assert node.state is NodeState.UP
    assert node.started.timestamp() == pytest.approx(now, abs=0.001)
    assert (node.lease - node.started).total_seconds() == pytest.approx(12.0, abs=0.5)


def test_a_renewal_extends_the_lease_and_reports_the_load(store: Driven) -> None:
    one = join(store, "one", 5.0)
    load = NodeLoad(awake=3, room=7, cpu=0.5, clock_error=0.001)
    now = store.write(nodes.renew, one, 50.0, load)
    node = only(store)
    assert node.load == load
    assert node.lease.timestamp() == pytest.approx(now + 50.0, abs=0.5)


def test_a_lease_that_has_ended_is_not_renewed(store: Driven) -> None:
    one = join(store, "one", ENDED)
    assert store.write(nodes.renew, one, LONG, NodeLoad()) is None
    assert store.read(nodes.expired) == [one]


@pytest.mark.parametrize("node_id", ["", "node_unknown"])
def test_an_unknown_node_is_neither_renewed_nor_drained_nor_evicted(store: Driven, node_id: str) -> None:
    assert store.write(nodes.renew, node_id, LONG, NodeLoad()) is None
    assert store.write(nodes.drain, node_id) is False
    assert store.write(nodes.evict, node_id) is False
    assert store.write(nodes.disown, node_id, 10) == []


def test_a_draining_node_keeps_its_lease(store: Driven) -> None:
    one = join(store, "one")
    assert store.write(nodes.drain, one) is True
    assert store.write(nodes.renew, one, LONG, NodeLoad()) is not None
    assert only(store).state is NodeState.DRAINING


def test_a_node_with_a_lease_is_not_evicted_and_keeps_its_work(store: Driven) -> None:
    one, address = join(store, "one"), create(store, "a")
    give(store, one, address)
    assert store.read(nodes.expired) == []
    assert store.write(nodes.evict, one) is False
    assert store.write(nodes.disown, one, 10) == []
    assert epochs(store)[address] == (one, 0)


def test_a_node_is_evicted_once_and_can_never_renew_again(store: Driven) -> None:
    one = join(store, "one", ENDED)
    assert store.write(nodes.evict, one) is True
    assert store.write(nodes.evict, one) is False
    assert store.read(nodes.expired) == []
    assert store.write(nodes.renew, one, LONG, NodeLoad()) is None
    assert store.read(nodes.listed) == []
    assert [node.state for node in store.read(lambda tx: nodes.listed(tx, gone=True))] == [NodeState.GONE]


def test_one_of_many_that_evict_at_once_does_it(store: Driven) -> None:
    one, evicted = join(store, "one", ENDED), list[bool]()
    threads = [
        threading.Thread(target=lambda n=n: evicted.append(store.write(nodes.evict, one, key=f"writer {n}")))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(evicted) == [False] * 7 + [True]


def test_the_work_of_a_node_that_is_gone_belongs_to_nobody_and_it_can_no_longer_write(store: Driven) -> None:
    one, two = join(store, "one", ENDED), join(store, "two")
    addresses = [create(store, name) for name in "abcde"]
    give(store, one, *addresses[:4])
    give(store, two, addresses[4])
    assert store.read(nodes.owned, one) == 4
    store.write(nodes.evict, one)
    assert store.write(nodes.disown, one, 3) == addresses[:3]
    assert store.write(nodes.disown, one, 3) == addresses[3:4]
    assert store.write(nodes.disown, one, 3) == []
    assert store.read(nodes.owned, one) == 0
    assert epochs(store) == {**dict.fromkeys(addresses[:4], ("", 1)), addresses[4]: (two, 0)}


def test_a_node_that_leaves_is_gone_at_once(store: Driven) -> None:
    one, address = join(store, "one"), create(store, "a")
    give(store, one, address)
    store.write(nodes.leave, one)
    assert store.read(nodes.expired) == []
    assert store.write(nodes.renew, one, LONG, NodeLoad()) is None
    assert store.write(nodes.disown, one, 10) == [address]


def test_nodes_that_are_long_gone_are_forgotten(store: Driven) -> None:
    one, two = join(store, "one", ENDED), join(store, "two", ENDED)
    store.write(nodes.evict, one)
    assert store.write(nodes.forget, 1.0) == 0
    assert store.write(nodes.forget, 1e11) == 1
    assert [node.node_id for node in store.read(lambda tx: nodes.listed(tx, gone=True))] == [two]


def test_all_nodes_of_a_store_share_the_id_of_the_first(store: Driven) -> None:
    assert store.write(nodes.cluster_id, "cluster_1") == "cluster_1"
    assert store.write(nodes.cluster_id, "cluster_2") == "cluster_1"


def test_agents_name_the_node_that_they_belong_to(store: Driven) -> None:
    node = join(store, "a")
    for agent in ("d", "e"):
        create(store, agent)
    give(store, node, "ann/d")
    assert store.read(held.nodes_of_agents, ["ann/d", "ann/e", "ann/none"]) == {"ann/d": node}
