"""Facts in a cluster: a follower on any node gets those of all nodes, once, in one order."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from roost.core.monitoring.facts import Fact
from roost.runtime.monitoring.fact_stream import POLL_INTERVAL
from roost.service import AgentService
from tests.conftest import QUICK, eventually
from tests.runtime.cluster.brains import echo
from tests.runtime.cluster.conftest import Nodes, awake_agent

pytestmark = pytest.mark.postgres


def _names(facts: list[Fact]) -> list[str]:
    return [str(fact.name) for fact in facts]


def _until(node: AgentService, cursor: str, count: int) -> tuple[list[Fact], str]:
    """Return facts after a cursor, and the cursor of the last one."""
    found: list[Fact] = []
    while len(found) < count:
        page = node.monitor.wait("ann", cursor, timeout=10)
        assert page.facts
        assert not page.gap
        found += page.facts
        cursor = found[-1].cursor
    return found, cursor


@pytest.mark.parametrize("is_down", [False, True])
def test_a_follower_on_another_node_sees_what_an_agent_does(nodes: Nodes, is_down: bool) -> None:
    started = nodes.start({"echo": echo}, 3)
    home, [other, _] = awake_agent(started, "d", profile="echo")
    eventually(lambda: "TaskDone" in _names(list(other.monitor.facts("ann").facts)))
    cursor = other.monitor.facts("ann").cursor
    if is_down:
        nodes.network.cut |= {nodes.id_of(one) for one in started}
    task = home.tasks.send("ann", "d", "again")
    found, _ = _until(other, cursor, 5)
    assert _names(found) == ["TaskSent", "RunStarted", "TaskStarted", "RunEnded", "TaskDone"]
    assert found[-1].root == task


def test_a_follower_that_changes_nodes_misses_nothing_and_gets_nothing_twice(nodes: Nodes) -> None:
    started = nodes.start({"echo": echo}, 3)
    cursor = started[0].monitor.facts("ann").cursor

    def create(node: AgentService, number: int) -> None:
        for each in range(40):
            node.agents.create("ann", f"d{number}-{each}", start=False)

    writers = [threading.Thread(target=create, args=(node, number)) for number, node in enumerate(started)]
    for writer in writers:
        writer.start()
    found: list[Fact] = []
    while len(found) < 120:
        [*new], cursor = _until(started[len(found) % 3], cursor, 1)
        found += new
    for writer in writers:
        writer.join()
    assert sorted(fact.about or "" for fact in found) == sorted(
        f"ann/d{n}-{each}" for n in range(3) for each in range(40)
    )
    pages = [node.monitor.facts("ann", after=found[9].cursor, limit=50) for node in started]
    assert {tuple(fact.about for fact in page.facts) for page in pages} == {tuple(fact.about for fact in found[10:60])}


def test_facts_that_are_no_longer_kept_are_a_gap_on_every_node(nodes: Nodes) -> None:
    started = nodes.start({"echo": echo}, 2, limits=replace(QUICK, facts_kept=5))
    cursor = started[0].monitor.facts("ann").cursor
    for number in range(8):
        started[number % 2].agents.create("ann", f"d{number}", start=False)
    for page in [node.monitor.facts("ann", after=cursor) for node in started]:
        assert page.gap
        assert [fact.about for fact in page.facts] == [f"ann/d{number}" for number in range(3, 8)]


def test_a_node_that_starts_later_continues_after_a_cursor_of_another(nodes: Nodes) -> None:
    [first] = nodes.start({"echo": echo})
    first.agents.create("ann", "one", start=False)
    cursor = first.monitor.facts("ann").cursor
    first.agents.create("ann", "two", start=False)
    [second] = nodes.start({"echo": echo})
    page = second.monitor.facts("ann", after=cursor)
    assert ([fact.about for fact in page.facts], page.gap) == (["ann/two"], False)


def test_mail_from_another_node_wakes_a_reader_at_once(nodes: Nodes) -> None:
    first, second = nodes.start({"echo": echo}, 2)
    cursor = second.mail.arrivals("ann").cursor

    def send() -> None:
        eventually(lambda: second.roost.context.facts.has_readers)
        first.mail.send("ann", "user:ann", "hello", "you")

    sender = threading.Thread(target=send)
    sender.start()
    started = time.monotonic()
    page = second.mail.wait("ann", cursor, timeout=10)
    sender.join()
    assert [mail.subject for mail in page.mail] == ["hello"]
    assert time.monotonic() - started < POLL_INTERVAL
