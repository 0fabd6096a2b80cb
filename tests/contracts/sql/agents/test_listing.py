"""Lists of agents and of their inboxes, on every store."""

from __future__ import annotations

from dataclasses import replace

import pytest

from roost.core.agents.agent import Agent, State
from roost.core.agents.agent_filter import AgentFilter
from roost.core.envelopes.effects import SendTask
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.envelopes.outcomes import StateChange
from roost.core.runs import Closing, Verdict
from roost.core.values.priority import Priority, rank
from roost.errors import NotFound
from roost.stores.sql import settlement
from roost.stores.sql.agents import agents, lifecycle, listing
from roost.stores.sql.sending import effects
from tests.contracts.conftest import Driven
from tests.contracts.sql.test_events import create, take


def listed(store: Driven, after: str = "", limit: int = 10, **wanted: object) -> list[str]:
    found: list[Agent] = store.read(listing.listed, "ann", AgentFilter(**wanted), limit, after)  # type: ignore[arg-type]
    return [one.agent_id for one in found]


def send(
    store: Driven, address: str, name: str, priority: Priority = Priority.NORMAL, created: float = 1.0
) -> Envelope:
    ranked = rank(created, priority)
    task = Envelope(name, address, Kind.TASK, name, priority, "user:ann", f"do {name}", created, ranked, recorded=True)
    store.write(effects.post, SendTask(task))
    return task


def fail(store: Driven, address: str, number: int) -> None:
    """Let the agent fail at a task that is tried again."""
    send(store, address, f"task_{number}")
    taken = take(store, address)
    envelope = next(one for one in taken.envelopes if one.envelope_id == f"task_{number}")
    closing = Closing(f"run_{number}", envelope, taken.epoch, Verdict.RETRY, "", 1.0, 2.0, due=1e9, fault="internal")
    assert store.write(settlement.settle, (closing,))[0].taken


def test_agents_are_filtered_by_state_flags_and_profile_in_pages(store: Driven) -> None:
    for name in ("a", "b", "c"):
        create(store, name, profile="echo")
    create(store, "plain")
    create(store, "a", user="bob")
    change = StateChange("change_x", 3.0, None, "", "paused", "user:ann")
    store.write(lifecycle.pause, "ann", "b", True, change)
    assert listed(store, profile="echo", limit=2) == ["a", "b"]
    assert listed(store, profile="echo", limit=2, after="b") == ["c"]
    assert listed(store, profile="") == ["plain"]
    assert listed(store, paused=True) == ["b"]
    assert listed(store, paused=False, profile="echo") == ["a", "c"]
    assert listed(store, state=State.IDLE, text="a") == ["a", "b", "c", "plain"], "the profile has an `a` too"
    assert listed(store, profile="ech%") == []


def test_only_agents_with_something_in_their_inbox_may_be_active(store: Driven) -> None:
    create(store, "bored")
    send(store, create(store, "busy"), "task_1")
    assert listed(store, state=State.ACTIVE) == ["busy"]
    assert listed(store, state=State.WAITING) == ["busy"]


def test_an_agent_that_fails_is_listed_with_its_newest_failed_run(store: Driven) -> None:
    address = create(store, "d")
    create(store, "e")
    for number in (1, 2, 3):
        assert listed(store, failing=True) == []
        fail(store, address, number)
    assert listed(store, failing=True) == ["d"]
    assert listed(store, failing=False) == ["e"]
    found = store.read(agents.get, "ann", "d").last_error
    assert found is not None
    assert (found.run_id, found.fault, found.at.timestamp()) == ("run_3", "internal", 2.0)
    assert store.read(agents.get, "ann", "e").last_error is None


def test_an_inbox_is_listed_in_the_order_in_which_it_is_handled(store: Driven) -> None:
    address = create(store, "d")
    send(store, address, "task_1", created=100.0)
    send(store, address, "task_2", Priority.URGENT, created=101.0)
    send(store, address, "task_3", created=99.0)
    found = store.read(listing.inbox, "ann", "d", 10, "")
    assert [one.envelope_id for one in found] == ["task_2", "task_3", "task_1"]
    assert (found[0].text, found[0].kind, found[0].priority, found[0].due) == ("do task_2", "task", "urgent", None)
    assert [one.envelope_id for one in store.read(listing.inbox, "ann", "d", 1, "task_2")] == ["task_3"]
    with pytest.raises(NotFound):
        store.read(listing.inbox, "bob", "d", 10, "")


def test_a_failed_attempt_is_shown_in_the_inbox_until_it_is_due(store: Driven) -> None:
    address = create(store, "d")
    fail(store, address, 1)
    [found] = store.read(listing.inbox, "ann", "d", 10, "")
    assert found.failures == 1
    assert found.due is not None
    assert not found.is_parked


def test_agents_that_work_are_shown_with_what_they_work_on(store: Driven) -> None:
    create(store, "bored")
    send(store, create(store, "busy"), "task_1")
    found = store.read(listing.listed, "ann", AgentFilter(), 10, "")
    working = [replace(one, current_tasks=("task_1",)) if one.agent_id == "busy" else one for one in found]
    busy, bored = sorted(store.read(listing.with_current_tasks, working), key=lambda one: one.agent_id, reverse=True)
    assert busy.working_on is not None
    assert (busy.working_on.envelope_id, busy.working_on.kind, busy.working_on.text) == ("task_1", "task", "do task_1")
    assert bored.working_on is None
