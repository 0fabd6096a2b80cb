"""A2 and A11 on every store: whoever writes for an agent proves by its epoch that it still may."""

from __future__ import annotations

import pytest

from roost.core.agents import AgentConfig, State
from roost.core.envelopes import Change, Envelope, Kind, Publish, SendTask, Taken, Verdict, WorkClosing
from roost.core.priority import Priority
from roost.errors import Conflict, LimitReached
from roost.stores.statements import agents, inbox, tasks
from tests.contracts.conftest import Driven
from tests.contracts.test_event_statements import create, take


def given_task(store: Driven, address: str) -> tuple[Taken, Envelope]:
    """What the agent is handed over when it wakes."""
    task = Envelope("task_1", address, Kind.TASK, "task_1", Priority.NORMAL, "user:ann", "do", 1.0, 1.0, recorded=True)
    store.write(inbox.post, SendTask(task))
    taken = take(store, address)
    return taken, taken.envelopes[0]


def done(store: Driven, envelope: Envelope, epoch: int) -> bool:
    closing = WorkClosing(f"run_{epoch}", envelope, epoch, Verdict.DONE, f"of {epoch}", 1.0, 2.0, memory="{}")
    [settled] = store.write(inbox.settle, (closing,))
    assert isinstance(settled.taken, bool)
    return settled.taken


def stop(store: Driven) -> None:
    change = Change("change_x", 3.0, None, State.STOPPED, "stopped", "user:ann")
    news = Publish("event_x", "ann", "agent.failed", {}, Priority.NORMAL, "agent:ann/d", 3.0, optional=True)
    store.write(agents.stop, "ann", "d", change, news)


def test_one_from_whom_an_agent_was_taken_over_ends_nothing(store: Driven) -> None:
    address = create(store, "d")
    before, envelope = given_task(store, address)
    after = take(store, address)
    assert after.epoch > before.epoch
    assert not done(store, envelope, before.epoch)
    assert store.write(inbox.claim, envelope, before.epoch) is None
    assert store.read(tasks.get, "ann", "task_1").status == "queued"
    assert done(store, envelope, after.epoch)
    assert store.read(tasks.get, "ann", "task_1").result == f"of {after.epoch}"


def test_whoever_works_for_an_agent_that_is_stopped_ends_nothing(store: Driven) -> None:
    address = create(store, "d")
    taken, envelope = given_task(store, address)
    stop(store)
    assert not done(store, envelope, taken.epoch)
    assert store.write(inbox.claim, envelope, taken.epoch) is None
    assert store.read(tasks.get, "ann", "task_1").status == "queued"
    assert not take(store, address).ready


@pytest.mark.parametrize("before", [None, "active"])
def test_the_state_that_only_whoever_works_for_it_knows_is_on_record(store: Driven, before: str | None) -> None:
    create(store, "d")
    change = Change("change_x", 3.0, before, State.SLEEPING, "put to sleep", "user:ann")
    store.write(agents.sleep, "ann", "d", '{"event":"x"}', change)
    assert store.read(agents.history, "ann", "d", 1, "\x7f")[0].before == (before or "idle")


def test_there_is_a_bound_on_agents_and_deleting_makes_room(store: Driven) -> None:
    change = Change("change_x", 1.0, None, State.IDLE, "created", "user:ann")

    def make(*names: str) -> None:
        store.write(agents.create, "ann", names, AgentConfig(), change, 3)

    make("a", "b")
    with pytest.raises(LimitReached, match="delete some first"):
        make("c", "d")
    with pytest.raises(Conflict, match="'b' already"):
        make("b")
    assert [one.agent_id for one in store.read(agents.listed, "ann", 10, "", None)] == ["a", "b"]
    make("c")
    store.write(agents.delete, "ann", "a")
    make("d")
    assert [one.agent_id for one in store.read(agents.listed, "ann", 10, "", None)] == ["b", "c", "d"]
