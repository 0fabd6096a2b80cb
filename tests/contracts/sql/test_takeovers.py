"""Nodes that claim, post, leave and evict each other on two connections, in every order of their statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg
import pytest

from roost.core.cluster.nodes import NewNode, NodeLoad
from roost.errors import Unavailable
from roost.ports import Tx
from roost.stores.postgres import Postgres
from roost.stores.postgres_connection import PostgresConnection
from roost.stores.sql import nodes
from roost.stores.sql.talks import messages, runs, talks
from tests.contracts.interleaving import Interleaving, Transaction
from tests.contracts.sql.test_fences import OF_AGENTS, OF_TALKS, Case, claim, given, name
from tests.servers import fresh_store

pytestmark = pytest.mark.postgres
Sides = tuple[list[Transaction], list[Transaction]]


@pytest.fixture(scope="module")
def sides(postgres: str) -> Iterator[Interleaving]:
    with fresh_store(postgres) as url:
        made = Interleaving(url)
        yield made
        made.close()


def on(node: str, op: Callable[..., Any], *args: Any) -> Transaction:
    """Return a transaction of a node."""

    def run(tx: Tx) -> Any:
        tx.node = node
        try:
            return op(tx, *args)
        finally:
            tx.node = ""

    return run


def joined(sides: Interleaving, *, seconds: float = 1_000.0) -> str:
    node = name("node")
    sides.do(lambda tx: nodes.join(tx, NewNode(node, node, "", "1.0", ("echo",), 99), seconds))
    return node


@dataclass
class Owned:
    """Work of a node."""

    case: Case
    node: str

    @property
    def evicted(self) -> list[Transaction]:
        return [lambda tx: nodes.disown(tx, self.node, 100)]

    @property
    def released(self) -> list[Transaction]:
        return [lambda tx: nodes.release(tx, self.node, (), ())]


def owned(sides: Interleaving, *, alive: bool = False) -> Owned:
    """Let a node own an agent and a talk; unless it is alive, its lease has ended and it is evicted."""
    case, node = given(sides), joined(sides, seconds=1_000.0 if alive else -1.0)

    def own(tx: Tx) -> None:
        tx.write("UPDATE agents SET node = :node WHERE address = :address", {"node": node, "address": case.agent})
        tx.write("UPDATE talks SET node = :node WHERE talk_id = :talk", {"node": node, "talk": case.talk_id})

    sides.do(own)
    assert alive or sides.do(lambda tx: nodes.evict(tx, node))
    return Owned(case, node)


def free_talk(sides: Interleaving, *, message: bool = True) -> str:
    """Create a talk that belongs to no node, with a message."""
    talk_id = name("talk")
    sides.do(lambda tx: talks.create(tx, talk_id, "ann", "echo", "queue", "", "{}", 10**6))
    if message:
        sides.do(lambda tx: post(tx, talk_id))
    return talk_id


def post(tx: Tx, talk_id: str, busy: str | None = None) -> Any:
    return messages.post(tx, "ann", talk_id, "hi", None, busy, "t", name("env"), 0.0, 100)


def owner(sides: Interleaving, talk_id: str) -> str:
    return str(sides.do(lambda tx: tx.one("SELECT node FROM talks WHERE talk_id = :id", {"id": talk_id}))[0])


def every_order(sides: Interleaving, both: Callable[[], Sides], least: int = 4) -> Iterator[Any]:
    """Yield the outcome of each order; there have to be some."""
    count = 0
    for done in sides.run_all(both, switches=2):
        count += 1
        yield done
    assert count >= least


# --- a node that is evicted or leaves, against everything that it writes --------------------------------------

PAIRS = [
    pytest.param(write, ending, id=f"{kind}-{write_name}-{ending}")
    for kind, writes in (("agent", OF_AGENTS), ("talk", OF_TALKS))
    for write_name, write in writes.items()
    for ending in ("evicted", "released")
]


@pytest.mark.parametrize(("write", "ending"), PAIRS)
def test_no_write_of_a_node_is_committed_after_its_work_was_taken(
    sides: Interleaving, write: Callable[[Tx, Case], Any], ending: str
) -> None:
    def both() -> Sides:
        made = owned(sides, alive=ending == "released")
        return [on(made.node, write, made.case)], getattr(made, ending)

    written = 0
    for done in every_order(sides, both):
        is_first = done.is_before((0, 0), (1, 0))
        assert is_first or not done.results[0][0], f"written by a node without a claim, in the order {done.order}"
        written += is_first and bool(done.results[0][0])
    assert written


# --- free work, which several nodes want ----------------------------------------------------------------------


def test_a_free_agent_is_claimed_by_one_of_two_nodes(sides: Interleaving) -> None:
    one, two = joined(sides), joined(sides)

    def both() -> Sides:
        address = given(sides).agent
        return [on(one, _claim, address)], [on(two, _claim, address)]

    for done in every_order(sides, both):
        [[first], [second]] = done.results
        assert sorted([first.ready, second.ready]) == [False, True], f"in the order {done.order}"
        assert (second.owner, first.owner) == ((one, "") if first.ready else ("", two))
        assert len(first.envelopes) + len(second.envelopes) == 2


def _claim(tx: Tx, address: str) -> Any:
    return claim(tx, address, ready=False)


def test_a_free_talk_is_claimed_by_one_of_two_nodes(sides: Interleaving) -> None:
    one, two = joined(sides), joined(sides)

    def both() -> Sides:
        talk_id = free_talk(sides)
        sides.do(lambda tx: tx.write("UPDATE talks SET node = '' WHERE talk_id = :id", {"id": talk_id}))
        return [on(one, runs.claim, talk_id)], [on(two, runs.claim, talk_id)]

    for done in every_order(sides, both):
        [[first], [second]] = done.results
        assert (first is None) != (second is None), f"in the order {done.order}"


def test_work_of_an_evicted_node_is_claimed_after_it_was_disowned_and_not_before(sides: Interleaving) -> None:
    new = joined(sides)

    def both() -> Sides:
        made = owned(sides)
        return [on(new, _claim, made.case.agent), on(new, runs.claim, made.case.talk_id)], made.evicted

    for done in every_order(sides, both):
        agent, talk = done.results[0]
        assert agent.ready == (not done.is_before((0, 0), (1, 0))), f"in the order {done.order}"
        assert (talk is not None) == (not done.is_before((0, 1), (1, 0))), f"in the order {done.order}"


# --- messages ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("busy", ["queue", "interrupt"])
def test_a_message_that_is_posted_while_its_talk_is_claimed_is_not_missed(sides: Interleaving, busy: str) -> None:
    one, two = joined(sides), joined(sides)

    def both() -> Sides:
        talk_id = free_talk(sides)
        sides.do(on(one, runs.claim, talk_id))
        return [on(one, runs.claim, talk_id)], [on(two, post, talk_id, busy)]

    for done in every_order(sides, both):
        [[claimed], [posted]] = done.results
        is_claimed = posted.envelope.envelope_id in {e.envelope_id for e in claimed.envelopes}
        assert is_claimed == done.is_before((1, 0), (0, 0)), f"in the order {done.order}"
        assert is_claimed or posted.node == one, "its node is notified"


@pytest.mark.parametrize("ending", ["evicted", "released"])
def test_a_message_to_a_node_that_ends_waits_for_another_one(sides: Interleaving, ending: str) -> None:
    new, posted_to = joined(sides), list[Owned]()

    def both() -> Sides:
        made = owned(sides, alive=ending == "released")
        posted_to.append(made)
        return [on(new, post, made.case.talk_id)], getattr(made, ending)

    for done in every_order(sides, both):
        [[posted], _] = done.results
        made = posted_to[-1]
        assert posted.node in (made.node, new)
        assert owner(sides, made.case.talk_id) == (new if posted.node == new else ""), f"in the order {done.order}"
        claimed = sides.do(on(new, runs.claim, made.case.talk_id))
        assert posted.envelope.envelope_id in {e.envelope_id for e in claimed.envelopes}


def test_messages_of_two_nodes_to_one_talk_are_numbered_without_gaps(sides: Interleaving) -> None:
    one, two = joined(sides), joined(sides)

    def both() -> Sides:
        talk_id = free_talk(sides, message=False)
        return [on(one, post, talk_id)], [on(two, post, talk_id)]

    for done in every_order(sides, both):
        [[first], [second]] = done.results
        assert sorted([first.message.seq, second.message.seq]) == [1, 2], f"in the order {done.order}"
        assert first.node == second.node, "the first one takes the talk, and the other one learns it"


# --- nodes that evict ---------------------------------------------------------------------------------------------


def test_a_node_is_evicted_by_one_of_two(sides: Interleaving) -> None:
    def both() -> Sides:
        node = joined(sides, seconds=-1.0)
        return [lambda tx: nodes.evict(tx, node)], [lambda tx: nodes.evict(tx, node)]

    for done in every_order(sides, both):
        assert sorted(results[0] for results in done.results) == [False, True], f"in the order {done.order}"


def test_epochs_are_raised_once_when_two_nodes_take_the_work_of_a_third(sides: Interleaving) -> None:
    made = list[Owned]()

    def both() -> Sides:
        made.append(owned(sides))
        return made[-1].evicted, made[-1].evicted

    for done in every_order(sides, both):
        query = "SELECT epoch, node FROM agents WHERE address = :agent"
        found = sides.do(lambda tx: tx.one(query, {"agent": made[-1].case.agent}))  # noqa: B023 — called at once
        assert found == (2, ""), f"in the order {done.order}"


def test_a_lease_is_either_renewed_or_its_node_is_evicted(sides: Interleaving) -> None:
    def both() -> Sides:
        node = joined(sides, seconds=-1.0)
        return [lambda tx: nodes.renew(tx, node, 10.0, NodeLoad())], [partial(nodes.evict, node_id=node)]

    for done in sides.run_all(both):
        [[renewed], [evicted]] = done.results
        assert (renewed, evicted) == (None, True), f"in the order {done.order}"


def test_a_transaction_of_a_frozen_node_ends_with_its_eviction_and_its_locks_are_free(
    sides: Interleaving,
) -> None:
    case, node = given(sides), joined(sides, seconds=-1.0)

    def take(tx: Tx) -> bool:
        tx.write("SET LOCAL lock_timeout = '500ms'")
        return bool(claim(tx, case.agent).ready)

    with closing(PostgresConnection(sides.url, read_only=False, node=node)) as frozen:
        frozen.begin()
        assert OF_AGENTS["open"](frozen, case), "it holds the row of the agent"
        assert sides.do(lambda tx: nodes.evict(tx, node)) is True
        assert sides.do(take)
        with pytest.raises(psycopg.OperationalError):
            frozen.commit()


def test_a_node_that_was_evicted_cannot_connect_again(sides: Interleaving) -> None:
    node = joined(sides, seconds=-1.0)
    with ExitStack() as ended:
        database = Postgres(sides.url, node)
        ended.callback(database.release)
        database.connect(read_only=False).close()
        assert sides.do(lambda tx: nodes.evict(tx, node)) is True
        with pytest.raises(Unavailable, match="has lost its lease"):
            database.connect(read_only=False).close()
