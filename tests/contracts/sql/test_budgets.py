"""Budgets of origins on every store, and what is checked before many agents are made."""

from __future__ import annotations

import pytest

from roost.errors import Conflict, LimitReached
from roost.stores.sql import budgets
from roost.stores.sql.agents import agents
from tests.contracts.conftest import Driven
from tests.contracts.sql.test_events import create


def test_the_higher_count_is_kept_whatever_the_order_of_writes(store: Driven) -> None:
    store.write(budgets.save, "root_1", (5, 1, 0, 100), 1.0)
    store.write(budgets.save, "root_1", (3, 2, 0, 90), 2.0)
    store.write(budgets.save, "root_2", (1, 1, 1, 1), 3.0)
    assert sorted(store.read(budgets.load_all)) == [("root_1", (5, 2, 0, 100)), ("root_2", (1, 1, 1, 1))]


def test_agents_that_could_not_be_made_are_refused_before_any_is(store: Driven) -> None:
    create(store, "d")
    store.read(agents.check_new, "ann", ["e", "f"], 3)
    with pytest.raises(LimitReached, match="you may have at most 2 agents"):
        store.read(agents.check_new, "ann", ["e", "f"], 2)
    with pytest.raises(Conflict, match="there is an agent 'd' already"):
        store.read(agents.check_new, "ann", ["d", "e"], 9)
    with pytest.raises(Conflict, match="'e' is named twice"):
        store.read(agents.check_new, "ann", ["e", "e"], 9)
