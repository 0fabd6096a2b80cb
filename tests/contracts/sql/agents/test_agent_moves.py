"""A2 on every store: the history and the row of an agent follow the table of moves."""

from __future__ import annotations

import random
from itertools import product

import pytest

from roost.core.agents import wake
from roost.core.agents.agent import MOVES, State
from roost.core.envelopes.outcomes import StateChange
from roost.errors import Conflict
from roost.ports import Tx
from roost.stores.sql.agents import agents
from roost.stores.sql.sleep import window
from roost.stores.sql.tables import agent_changes
from tests.contracts.conftest import Driven
from tests.contracts.sql.agents.test_agents import rows, stop
from tests.contracts.sql.test_events import create


def change(number: int, after: State, *, announced: bool = False) -> StateChange:
    return StateChange(f"change_b{number:03}", float(number), None, after, "test", "roost", announced=announced)


def append(store: Driven, key: str, *changes: StateChange) -> None:
    store.write(agent_changes.append, [(key, one) for one in changes])


def course(store: Driven) -> list[tuple[object, ...]]:
    return rows(store, "SELECT before, after FROM agent_changes WHERE before IS NOT NULL ORDER BY change_id")


@pytest.mark.parametrize(("before", "after"), [*product(State, State)])
def test_an_illegal_change_raises_and_writes_nothing(store: Driven, before: State, after: State) -> None:
    key = create(store, "d")
    append(store, key, change(1, before))
    recorded = course(store)
    if after is before or after in MOVES[before]:
        append(store, key, change(9, after))
        assert course(store) == recorded + [(before, after)] * (after is not before)
    else:
        with pytest.raises(Conflict, match=f"is {before} and cannot become {after}"):
            append(store, key, change(9, after))
        assert course(store) == recorded


@pytest.mark.parametrize("seed", range(10))
def test_random_changes_leave_only_legal_moves(store: Driven, seed: int) -> None:
    key, chance = create(store, "d"), random.Random(seed)
    for number in range(1, 40):
        one = change(number, chance.choice(list(State)), announced=chance.random() < 0.5)
        try:
            append(store, key, one)
        except Conflict:
            assert not one.announced, "what an activation announces too late is dropped"
    assert all(State(str(after)) in MOVES[State(str(before))] for before, after in course(store))


def test_a_turn_of_a_stopped_agent_does_not_put_it_to_sleep(store: Driven) -> None:
    """A turn of a talk ends when its agent was stopped a moment ago."""
    key = create(store, "d")
    stop(store)
    asleep = StateChange("change_y", 4.0, State.ACTIVE, State.SLEEPING, "asked for", f"agent:{key}", announced=True)

    def settle(tx: Tx) -> None:
        agent_changes.append(tx, [(key, asleep)])
        assert window.fall_asleep(tx, key, wake.to_json(wake.at(9.0)), "run_1", [], [], 4.0) == ()

    store.write(settle)
    assert store.read(agents.get, "ann", "d").state is State.STOPPED
    assert course(store) == [("idle", "stopped")]
    assert rows(store, "SELECT key FROM timers WHERE key = 'wake'") == []
