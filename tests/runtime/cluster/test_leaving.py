"""C2: a node that closes gives its work to others at once."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from roost.ports import Turn
from tests.conftest import QUICK, eventually, settled
from tests.runtime.cluster.brains import echo, silent, until
from tests.runtime.cluster.conftest import Nodes, awake_agent

pytestmark = pytest.mark.postgres


def test_work_of_a_node_that_closes_continues_elsewhere_at_once(nodes: Nodes) -> None:
    done = threading.Event()

    async def working(turn: Turn) -> AsyncIterator[str]:
        await until(done)
        yield turn.text

    first, second = nodes.start({"working": working}, 2)
    for number in range(4):
        first.agents.create("ann", f"d{number}", profile="working")
    tasks = [first.tasks.send("ann", f"d{number}", f"t{number}") for number in range(4)]
    talks = [one.create_talk_session("ann", profile="working") for one in (first, second)]
    for talk in talks:
        first.add_message("ann", talk, "hello")
    eventually(lambda: first.roost.dispatcher.count + second.roost.dispatcher.count == 4)
    first.close()
    eventually(lambda: second.roost.dispatcher.count == 4, 2)
    eventually(lambda: all(second.roost.placement.run_of(talk) for talk in talks), 2)
    done.set()
    for number, task in enumerate(tasks):
        ended = second.tasks.wait("ann", task, timeout=5)
        assert (ended.result, ended.attempts) == (f"t{number}", 1)
    assert [settled(second, "ann", talk)[-1].content for talk in talks] == ["hello", "hello"]


def test_new_work_of_an_idle_agent_does_not_wait_for_the_drain_of_its_node(nodes: Nodes) -> None:
    started = nodes.start({"echo": echo, "silent": silent}, 2, limits=replace(QUICK, drain=4.0))
    home, [other] = awake_agent(started, "d", profile="echo")
    busy = home.create_talk_session("ann", profile="silent")
    home.add_message("ann", busy, "go")
    eventually(lambda: home.roost.placement.run_of(busy))
    closing = threading.Thread(target=home.close)
    closing.start()
    eventually(lambda: home.roost.context.closing)
    task = other.tasks.send("ann", "d", "meanwhile")
    ended = other.tasks.wait("ann", task, timeout=2.5)
    other.stop("ann", busy)
    closing.join(10)
    assert ended.result == "meanwhile"


def test_a_reader_of_a_node_that_drains_follows_the_talk_to_another_node(nodes: Nodes) -> None:
    first, second = nodes.start({"echo": echo, "silent": silent}, 2, limits=replace(QUICK, drain=4.0))
    talk, busy = (first.create_talk_session("ann", profile=profile) for profile in ("echo", "silent"))
    first.add_message("ann", busy, "go")
    eventually(lambda: first.roost.placement.run_of(busy))
    read: list[str] = []

    def follow() -> None:
        for change in first.stream_messages("ann", talk, follow=True):
            read.append(change.text)

    threads = [threading.Thread(target=follow), threading.Thread(target=first.close)]
    for thread in threads:
        thread.start()
    eventually(lambda: first.roost.dispatcher.is_draining)
    second.add_message("ann", talk, "hello")
    eventually(lambda: read == ["hello", "hello"], 4)
    second.stop("ann", busy)
    for thread in threads:
        thread.join(10)
