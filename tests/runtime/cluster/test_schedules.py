"""A5 and A7 in a cluster: each tick happens once, whatever node fires it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from roost.ports import Brain, Turn
from tests.conftest import eventually
from tests.runtime.cluster.conftest import Nodes

pytestmark = pytest.mark.postgres


def _counting(counted: Counter[str]) -> Brain:
    lock = threading.Lock()

    async def counting(turn: Turn) -> AsyncIterator[str]:
        with lock:
            counted[turn.text] += 1
        yield turn.text

    return counting


def test_every_tick_happens_once_on_three_nodes(nodes: Nodes) -> None:
    counted: Counter[str] = Counter()
    started = nodes.start({"counting": _counting(counted)}, 3)
    for number in range(3):
        started[number].agents.create("ann", f"d{number}", profile="counting")
        started[number].schedules.create("ann", f"d{number}", f"t{number}", every=1, overlap="queue_all")
    eventually(lambda: all(counted[f"t{number}"] >= 2 for number in range(3)), 6)
    for schedule in started[0].schedules.list("ann"):
        started[1].schedules.pause("ann", schedule.schedule_id)
    eventually(lambda: all(task.is_over for task in started[2].tasks.list("ann")), 3)
    tasks = started[2].tasks.list("ann", limit=1_000)
    assert Counter(task.prompt for task in tasks) == counted
    ticks = [(task.agent_id, round(task.created.timestamp(), 3)) for task in tasks]
    assert len(set(ticks)) == len(ticks)


def test_two_hundred_timers_due_at_once_are_handled_once_each(nodes: Nodes) -> None:
    counted: Counter[str] = Counter()
    started = nodes.start({"counting": _counting(counted)}, 3)
    for number in range(20):
        started[0].agents.create("ann", f"d{number}", profile="counting", max_concurrent_tasks=5)
    due = datetime.now(UTC) + timedelta(seconds=1)
    for number in range(200):
        started[number % 3].schedules.create("ann", f"d{number % 20}", f"t{number}", at=due)
    eventually(lambda: len(counted) == 200, 8)
    eventually(lambda: all(task.is_over for task in started[1].tasks.list("ann", limit=1_000)), 3)
    assert set(counted.values()) == {1}
    assert len(started[1].tasks.list("ann", limit=1_000)) == 200


def test_an_agent_wakes_by_the_time_that_another_node_has_set(nodes: Nodes) -> None:
    counted: Counter[str] = Counter()
    started = nodes.start({"counting": _counting(counted)}, 2)
    started[0].agents.create("ann", "d", profile="counting")
    started[0].agents.sleep("ann", "d", until=datetime.now(UTC) + timedelta(hours=1))
    task = started[0].tasks.send("ann", "d", "after")
    started[1].sleep_scheduler.schedule_wake("ann", "d", datetime.now(UTC) + timedelta(seconds=0.3))
    assert started[0].tasks.wait("ann", task, timeout=4).result == "after"
