"""Lists of tasks, on every store: by agent and by status; each reads no more rows than it returns."""

from __future__ import annotations

import pytest

from roost.core.envelopes.effects import SendTask
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.values.priority import Priority, rank
from roost.stores.sql import tasks
from roost.stores.sql.sending import effects
from tests.contracts.conftest import Driven
from tests.contracts.plans import Plan
from tests.contracts.sql.test_events import create

AFTER_ALL = "z"


def send(store: Driven, address: str, name: str, sender: str) -> None:
    ranked = rank(1.0, Priority.NORMAL)
    task = Envelope(name, address, Kind.TASK, name, Priority.NORMAL, sender, "do it", 1.0, ranked, recorded=True)
    store.write(effects.post, SendTask(task))


def listed(
    store: Driven, user: str, address: str | None = None, status: str | None = None, before: str = AFTER_ALL
) -> list[str]:
    return [task.task_id for task in store.read(tasks.listed, user, address, status, 9, before)]


@pytest.fixture
def sent(store: Driven) -> Driven:
    """With tasks of ann to two agents of hers and to one of bob's, and one of bob's to each of his."""
    for agent, user in (("d", "ann"), ("e", "ann"), ("shared", "bob"), ("other", "bob")):
        create(store, agent, user=user, shared=True)
    send(store, "ann/d", "task_1", "user:ann")
    send(store, "ann/e", "task_2", "user:ann")
    send(store, "bob/shared", "task_3", "user:ann")
    send(store, "bob/shared", "task_4", "user:bob")
    send(store, "bob/other", "task_5", "user:bob")
    send(store, "ann/d", "task_6", "agent:ann/e")
    store.write(tasks.cancel, "ann", "task_1", 2.0)
    return store


def test_tasks_are_listed_by_agent_for_its_owner_and_for_their_sender(sent: Driven) -> None:
    assert listed(sent, "ann") == ["task_6", "task_3", "task_2", "task_1"]
    assert listed(sent, "ann", before="task_3") == ["task_2", "task_1"]
    assert listed(sent, "ann", "ann/d") == ["task_6", "task_1"]
    assert listed(sent, "ann", "bob/shared") == ["task_3"]
    assert listed(sent, "ann", "bob/other") == []
    assert listed(sent, "bob", "bob/shared") == ["task_4", "task_3"]
    assert listed(sent, "bob", "ann/d") == []


def test_tasks_are_listed_by_status(sent: Driven) -> None:
    assert listed(sent, "ann", status="queued") == ["task_6", "task_3", "task_2"]
    assert listed(sent, "ann", status="cancelled") == ["task_1"]
    assert listed(sent, "ann", "ann/d", "cancelled") == ["task_1"]
    assert listed(sent, "ann", "ann/e", "cancelled") == []
    assert listed(sent, "ann", "bob/shared", "queued") == ["task_3"]
    assert listed(sent, "ann", status="done") == []


@pytest.mark.parametrize(
    ("address", "status", "index"),
    [
        (None, None, "tasks_by_user (user_id=? AND task_id<?)"),
        (None, "done", "tasks_by_user (user_id=? AND task_id<?)"),
        (None, "queued", "tasks_by_user_and_status (user_id=? AND status=? AND task_id<?)"),
        (None, "failed", "tasks_by_user_and_status (user_id=? AND status=? AND task_id<?)"),
        ("ann/d", None, "tasks_by_agent (address=? AND task_id<?)"),
        ("ann/d", "done", "tasks_by_agent (address=? AND task_id<?)"),
        ("ann/d", "failed", "tasks_by_agent_and_status (address=? AND status=? AND task_id<?)"),
        ("bob/x", None, "tasks_by_guest (sender=? AND task_id<?)"),
    ],
)
def test_a_list_of_tasks_is_read_in_the_order_of_an_index(
    plan: Plan, address: str | None, status: str | None, index: str
) -> None:
    steps = plan(tasks.listed, "ann", address, status, 9, AFTER_ALL)
    assert f"SEARCH tasks USING INDEX {index}" in steps
    assert not any("TEMP B-TREE" in step or step.startswith("SCAN") for step in steps)
