"""Agents that are awake on one node and asked, changed and stopped on others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

import roost
from roost import NotFound
from roost.ports import Turn
from tests.conftest import eventually
from tests.runtime.cluster.brains import echo, silent
from tests.runtime.cluster.conftest import Nodes, awake_agent

pytestmark = pytest.mark.postgres


def test_a_task_is_sent_waited_for_and_read_on_different_nodes(nodes: Nodes) -> None:
    started = nodes.start({"echo": echo}, 3)
    _, others = awake_agent(started, "d", profile="echo")
    for number in range(10):
        task = others[0].tasks.send("ann", "d", f"t{number}")
        assert others[1].tasks.wait("ann", task, timeout=10).result == f"t{number}"
        assert others[0].tasks.wait("ann", task, timeout=10).status == "done"


def test_tasks_sent_on_all_nodes_are_handled_once_each(nodes: Nodes) -> None:
    handled: list[str] = []

    async def counting(turn: Turn) -> AsyncIterator[str]:
        handled.append(turn.text)
        yield turn.text

    started = nodes.start({"counting": counting}, 3)
    for agent in ("a", "b", "c", "d"):
        started[0].agents.create("ann", agent, profile="counting")
    tasks = [started[n % 3].tasks.send("ann", "abcd"[n % 4], f"t{n}") for n in range(120)]
    results = [started[(n + 1) % 3].tasks.wait("ann", task, timeout=10) for n, task in enumerate(tasks)]
    assert [(one.status, one.result, one.attempts) for one in results] == [("done", f"t{n}", 1) for n in range(120)]
    assert sorted(handled) == sorted(f"t{n}" for n in range(120))


def test_a_running_task_is_cancelled_on_another_node(nodes: Nodes) -> None:
    started = nodes.start({"silent": silent}, 2)
    home, [other] = awake_agent(started, "d", profile="silent")
    [task] = eventually(lambda: other.tasks.list("ann"))
    other.tasks.cancel("ann", task.task_id)
    eventually(lambda: not list(home.roost.dispatcher.all()[0].works))
    assert other.tasks.wait("ann", task.task_id, timeout=5).status == "cancelled"


def test_agents_on_different_nodes_ask_each_other(nodes: Nodes) -> None:
    async def asking(turn: Turn) -> AsyncIterator[str]:
        yield "+".join([await turn.ask(f"agent:e{number}", f"q{number}") for number in range(6)])

    started = nodes.start({"asking": asking, "echo": echo}, 3)
    for number in range(6):
        started[0].agents.create("ann", f"e{number}", profile="echo")
    started[0].agents.create("ann", "d", profile="asking")
    task = started[2].tasks.send("ann", "d", "ask")
    assert started[1].tasks.wait("ann", task, timeout=10).result == "+".join(f"q{number}" for number in range(6))
    talk = started[1].create_talk_session("ann", profile="asking")
    started[2].add_message("ann", talk, "ask")
    answers = [c.text for c in started[0].stream_messages("ann", talk) if c.message.sender == "agent"]
    assert "".join(answers) == "+".join(f"q{number}" for number in range(6))


def test_mail_sent_on_another_node_wakes_an_agent(nodes: Nodes) -> None:
    read: list[str] = []

    async def reading(turn: Turn) -> AsyncIterator[str]:
        if turn.kind == "mail":
            read.append(turn.text)
        yield ""

    started = nodes.start({"reading": reading}, 2)
    _, [other] = awake_agent(started, "d", profile="reading")
    other.agents.sleep("ann", "d", wake_on=roost.mail("high"))
    other.mail.send("ann", "agent:d", "news", "urgent text", priority="urgent")
    eventually(lambda: len(read) == 1, 5)
    assert "urgent text" in read[0]


def test_an_event_and_a_broadcast_reach_agents_of_all_nodes_once(nodes: Nodes) -> None:
    heard: list[tuple[str, str]] = []

    async def hearing(turn: Turn) -> AsyncIterator[str]:
        heard.append((turn.kind, turn.text))
        yield ""

    started = nodes.start({"hearing": hearing}, 3)
    for number in range(9):
        started[0].agents.create("ann", f"e{number}", profile="hearing", subscriptions=["data.*"])
    started[1].events.publish("ann", "data.ready", {"n": 1})
    eventually(lambda: len(heard) == 9, 5)
    started[2].agents.broadcast("ann", "all hands")
    eventually(lambda: len(heard) == 18, 5)
    assert {kind for kind, _ in heard[:9]} == {"event"}


def test_an_agent_is_paused_and_resumed_on_another_node(nodes: Nodes) -> None:
    started = nodes.start({"echo": echo}, 2)
    home, [other] = awake_agent(started, "d", profile="echo")
    other.agents.pause("ann", "d")
    eventually(lambda: not home.roost.dispatcher.is_awake("ann/d"))
    task = home.tasks.send("ann", "d", "later")
    assert other.tasks.wait("ann", task, timeout=0.3).status == "queued"
    other.agents.resume("ann", "d")
    assert home.tasks.wait("ann", task, timeout=5).result == "later"


def test_an_agent_is_put_to_sleep_and_woken_on_another_node(nodes: Nodes) -> None:
    started = nodes.start({"echo": echo}, 2)
    home, [other] = awake_agent(started, "d", profile="echo")
    other.agents.sleep("ann", "d")
    eventually(lambda: not home.roost.dispatcher.is_awake("ann/d"))
    task = other.tasks.send("ann", "d", "later")
    assert home.tasks.wait("ann", task, timeout=0.3).status == "queued"
    other.agents.wake("ann", "d")
    assert other.tasks.wait("ann", task, timeout=5).result == "later"


def test_more_concurrent_tasks_are_allowed_from_another_node_while_it_works(nodes: Nodes) -> None:
    started = nodes.start({"silent": silent}, 2)
    home, [other] = awake_agent(started, "d", profile="silent", max_concurrent_tasks=1)
    for number in range(2):
        other.tasks.send("ann", "d", str(number))
    [activation] = home.roost.dispatcher.all()
    other.agents.configure("ann", "d", max_concurrent_tasks=3)
    eventually(lambda: len(list(activation.works)) == 3, 5)
    other.agents.stop("ann", "d")


def test_an_agent_is_stopped_and_deleted_on_another_node_while_it_works(nodes: Nodes) -> None:
    stopped = threading.Event()

    async def working(turn: Turn) -> AsyncIterator[str]:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        yield ""

    started = nodes.start({"working": working}, 2)
    home, [other] = awake_agent(started, "d", profile="working")
    eventually(lambda: list(home.roost.dispatcher.all()[0].works))
    other.agents.stop("ann", "d")
    assert stopped.wait(5)
    stopped.clear()
    other.agents.start("ann", "d")
    eventually(lambda: any(one.roost.dispatcher.is_awake("ann/d") for one in started), 5)
    other.agents.delete("ann", "d")
    assert stopped.wait(5)
    eventually(lambda: not any(one.roost.dispatcher.is_awake("ann/d") for one in started), 5)
    with pytest.raises(NotFound):
        home.agents.get("ann", "d")


def test_the_state_that_another_node_sets_is_seen_by_the_next_turn(nodes: Nodes) -> None:
    async def telling(turn: Turn) -> AsyncIterator[str]:
        memories = await turn.recall("")
        yield f"{turn.state.get('n', 0)} {[one.text for one in memories]}"

    started = nodes.start({"telling": telling}, 2)
    _, [other] = awake_agent(started, "d", profile="telling")
    other.agents.set_state("ann", "d", {"n": 5})
    other.agents.remember("ann", "d", "blue", key="colour")

    def told() -> str | None:
        return other.tasks.wait("ann", other.tasks.send("ann", "d", "tell"), timeout=5).result

    eventually(lambda: told() == "5 ['blue']", 5)
