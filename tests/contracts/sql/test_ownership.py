"""C3 on every store: an agent with its talks, and a talk with a profile, belong to one node at a time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from roost.core.cluster.nodes import NewNode
from roost.core.envelopes.claims import ClaimedWork
from roost.core.failures.suspicion import Suspicion
from roost.core.runs import Closing, Verdict
from roost.core.talks.runs import Claimed, Posted
from roost.ports import ClaimEnvironment, ClaimRequest, Tx
from roost.stores.sql import nodes, settlement
from roost.stores.sql.agents import agents
from roost.stores.sql.inbox import claims, recovery
from roost.stores.sql.schedules import schedules
from roost.stores.sql.tables.timers import arm
from roost.stores.sql.talks import messages, runs, talks
from tests.contracts.conftest import Driven
from tests.contracts.sql.inbox.test_recovery import marks, tasks
from tests.contracts.sql.test_events import create
from tests.contracts.sql.test_nodes import epochs, join

NOW = 1_000.0
NUMBERS = count(1)
ONE, TWO = "node_one", "node_two"


class On:
    """Operations of one node."""

    def __init__(self, store: Driven, node: str) -> None:
        self.store = store
        self.node = node

    def __call__(self, op: Callable[..., Any], *args: Any) -> Any:
        def run(tx: Tx) -> Any:
            tx.node = self.node
            try:
                return op(tx, *args)
            finally:
                tx.node = ""

        return self.store.write(run)

    def claim(self, address: str, *, is_new: bool = True) -> ClaimedWork:
        environment = ClaimEnvironment(NOW, lambda: f"change_{self.node}{next(NUMBERS)}")
        [claimed] = self(claims.claim, (ClaimRequest(address, is_new),), environment)
        assert isinstance(claimed, ClaimedWork)
        return claimed

    def post(self, talk_id: str, **options: Any) -> Posted:
        busy = options.get("busy")
        posted = self(messages.post, "ann", talk_id, "hi", None, busy, "", f"env_{next(NUMBERS)}", 0.0, 100)
        assert isinstance(posted, Posted)
        return posted

    def create_talk(self, talk_id: str, agent: str = "") -> str:
        self(talks.create, talk_id, "ann", "" if agent else "echo", "queue", "", "{}", 100, agent)
        return talk_id


def both(store: Driven) -> tuple[On, On]:
    join(store, "one")
    join(store, "two")
    return On(store, ONE), On(store, TWO)


def test_an_agent_belongs_to_the_node_that_wakes_it_and_other_nodes_learn_which_one(store: Driven) -> None:
    (one, two), address = both(store), create(store, "a")
    tasks(store, address, "t")
    first = one.claim(address)
    assert first.ready
    assert first.is_new
    second = two.claim(address)
    assert (second.ready, second.owner, second.envelopes) == (False, ONE, ())
    assert epochs(store)[address] == (ONE, first.epoch)
    assert one.claim(address, is_new=False).ready


def test_the_work_of_a_dead_node_is_claimed_by_another_and_the_dead_one_can_no_longer_settle(store: Driven) -> None:
    (one, two), address = both(store), create(store, "a")
    tasks(store, address, "t")
    [envelope] = one.claim(address).envelopes
    store.write(nodes.give_up, ONE)
    assert store.write(nodes.evict, ONE)
    store.write(nodes.disown, ONE, 10)
    taken = two.claim(address)
    assert [e.envelope_id for e in taken.envelopes] == ["t"]
    late = Closing("run_1", envelope, taken.epoch - 2, Verdict.DONE, "late", 1.0, 2.0)
    [settled] = one(settlement.settle, (late,))
    assert not settled.taken
    closing = Closing("run_2", taken.envelopes[0], taken.epoch, Verdict.DONE, "done", 1.0, 2.0)
    [settled] = two(settlement.settle, (closing,))
    assert settled.taken


def test_only_what_ran_on_a_dead_node_is_suspect(store: Driven) -> None:
    one, two = both(store)
    for node, name in ((one, "a"), (two, "b")):
        tasks(store, create(store, name), f"t{name}")
        node.claim(f"ann/{name}")
        node.create_talk(f"talk_{name}")
        node.post(f"talk_{name}")
    store.write(nodes.give_up, ONE)
    assert store.write(nodes.evict, ONE)
    suspects = {name for name, (suspect, _) in marks(store).items() if suspect}
    of_talk = store.read(lambda tx: tx.read("SELECT envelope_id FROM inbox WHERE lane = 'talk_a'"))[0][0]
    assert suspects == {"ta", of_talk}
    assert all(attempts == 0 for _, attempts in marks(store).values())


def test_nothing_of_a_node_that_leaves_is_suspect(store: Driven) -> None:
    one, _ = both(store)
    tasks(store, create(store, "a"), "t")
    one.claim("ann/a")
    store.write(nodes.leave, ONE)
    assert store.write(nodes.disown, ONE, 10) == ["ann/a"]
    assert marks(store) == {"t": (0, 0)}


def test_what_ran_in_quarantine_on_a_node_that_leaves_is_still_to_run_there(store: Driven) -> None:
    one, _ = both(store)
    tasks(store, create(store, "a"), "t")
    one.claim("ann/a")
    assert one(recovery.isolate, ("t",))
    store.write(nodes.leave, ONE)
    assert marks(store) == {"t": (int(Suspicion.QUARANTINED), 0)}


def test_a_talk_belongs_to_the_node_that_creates_it_and_a_message_elsewhere_names_the_owner(store: Driven) -> None:
    one, two = both(store)
    one.create_talk("talk_1")
    assert one.post("talk_1").node == ONE
    assert two.post("talk_1", busy="interrupt").node == ONE
    assert two(runs.claim, "talk_1") is None
    claimed = one(runs.claim, "talk_1")
    assert isinstance(claimed, Claimed)
    assert len(claimed.envelopes) == 2
    assert two(runs.stop, "ann", "talk_1").node == ONE


def test_a_free_talk_belongs_to_the_node_that_first_uses_it(store: Driven) -> None:
    one, two = both(store)
    for talk_id in ("talk_1", "talk_2", "talk_3"):
        one.create_talk(talk_id)
    store.write(nodes.leave, ONE)
    store.write(nodes.disown, ONE, 10)
    assert two.post("talk_1").node == TWO
    assert two(talks.snapshot, "ann", "talk_2", 10).node == ""
    assert two(talks.load, "ann", "talk_2", 10).node == TWO
    assert isinstance(two(runs.claim, "talk_3"), Claimed)
    assert store.read(nodes.owned, TWO) == 3


def test_a_talk_with_an_agent_belongs_to_the_node_of_the_agent(store: Driven) -> None:
    (one, two), address = both(store), create(store, "a")
    two.create_talk("talk_1", address)
    assert two.post("talk_1").node == ""
    assert one.claim(address).talks == (("talk_1", "ann"),)
    assert two.post("talk_1").node == ONE
    assert two(runs.claim, "talk_1") is None
    assert isinstance(one(runs.claim, "talk_1"), Claimed)


def test_a_node_finds_only_its_own_work_and_what_is_free(store: Driven) -> None:
    one, two = both(store)
    for name in "abc":
        tasks(store, create(store, name), f"t{name}")
        one.create_talk(f"talk_{name}")
        one.post(f"talk_{name}")
    one.claim("ann/a")
    two.claim("ann/b")
    assert one(agents.unfinished, "", 10) == ["ann/a", "ann/c"]
    assert two(agents.unfinished, "", 10) == ["ann/b", "ann/c"]
    assert store.write(agents.unfinished, "", 10) == ["ann/a", "ann/b", "ann/c"]
    assert [row[0] for row in one(runs.unfinished, "", 10)] == ["talk_a", "talk_b", "talk_c"]
    assert two(runs.unfinished, "", 10) == []


def test_a_node_fires_its_own_timers_and_those_of_agents_that_are_not_awake(store: Driven) -> None:
    one, two = both(store)
    for number, name in enumerate("abc"):
        store.write(arm, create(store, name), "retry", 10.0 + number)
    one.claim("ann/a")
    two.claim("ann/b")
    assert one(schedules.next_due) == 10.0
    assert two(schedules.next_due) == 11.0

    def fire(node: On) -> list[str]:
        fired = node(schedules.fire, NOW, lambda: "task_1", lambda *_: False)
        return sorted(fired.looked)

    assert fire(two) == ["ann/b", "ann/c"]
    assert fire(two) == []
    assert fire(one) == ["ann/a"]


def test_what_nodes_that_are_gone_have_left_behind_is_found(store: Driven) -> None:
    one, two = both(store)
    create(store, "a")
    one.claim("ann/a")
    two.create_talk("talk_1")
    assert store.read(nodes.left_behind) == []
    store.write(nodes.leave, ONE)
    assert store.read(nodes.left_behind) == [ONE]
    store.write(nodes.disown, ONE, 10)
    assert store.read(nodes.left_behind) == []


def test_a_process_that_has_a_store_alone_takes_everything(store: Driven) -> None:
    one, _ = both(store)
    tasks(store, create(store, "a"), "t")
    one.claim("ann/a")
    one.create_talk("talk_1")
    one.post("talk_1")
    alone = On(store, "")
    assert alone.claim("ann/a").ready
    assert isinstance(alone(runs.claim, "talk_1"), Claimed)
    assert epochs(store)["ann/a"][0] == ""


@pytest.mark.parametrize("profile", ["a_b", "grüße 🐦", 'with "quotes" \\ and more', "%"])
def test_a_node_takes_a_free_talk_only_if_it_knows_its_profile(store: Driven, profile: str) -> None:
    store.write(nodes.join, NewNode(ONE, "one", "", "1.0", ("aXb", "echo"), 32), 100.0)
    store.write(nodes.join, NewNode(TWO, "two", "", "1.0", (profile, "echo"), 32), 100.0)
    store.write(talks.create, "talk_1", "ann", profile, "queue", "", "{}", 100)
    assert On(store, ONE)(talks.load, "ann", "talk_1", 10).node == ""
    assert On(store, ONE).post("talk_1").node == ""
    assert On(store, TWO).post("talk_1").node == TWO
