"""C4: a network that loses, doubles and delays messages, or is cut, costs time and nothing else."""

from __future__ import annotations

import random
import threading
from collections.abc import AsyncIterator, Callable

import pytest

from roost import NotFound
from roost.ports import Turn
from roost.service import AgentService
from roost.transports.memory import Carry, MemoryNetwork
from tests.conftest import eventually, everything
from tests.runtime.cluster.brains import echo, endless, silent, until, words
from tests.runtime.cluster.conftest import Nodes, awake_agent

pytestmark = pytest.mark.postgres


def unreliable(seed: int) -> Carry:
    """Return a network that loses 30 % of messages, doubles 10 % and delays 20 % of them."""
    rng = random.Random(seed)

    def carry(receive: Callable[[bytes], None], message: bytes) -> None:
        chance = rng.random()
        if chance < 0.3:
            return
        if chance < 0.4:
            receive(message)
        if chance < 0.6:
            threading.Timer(rng.random() * 0.2, receive, [message]).start()
        else:
            receive(message)

    return carry


def _ended(node: AgentService, talk: str) -> bool:
    return not node.get_messages("ann", talk).running


@pytest.mark.parametrize("seed", range(2))
def test_messages_of_all_nodes_are_answered_once_over_a_network_that_loses_some(nodes: Nodes, seed: int) -> None:
    nodes.network = MemoryNetwork(unreliable(seed))
    started = nodes.start({"echo": echo}, 3)
    talk = started[0].create_talk_session("ann", profile="echo", busy="queue")
    for number in range(12):
        started[number % 3].add_message("ann", talk, f"m{number}")
    eventually(lambda: all(_ended(node, talk) for node in started), 6)
    found = everything(started[1], "ann", talk)
    assert "|".join(m.content for m in found if m.sender == "agent") == "|".join(f"m{n}" for n in range(12))


def test_a_message_whose_notice_was_lost_is_answered_before_later_ones(nodes: Nodes) -> None:
    opened = threading.Event()

    async def waiting(turn: Turn) -> AsyncIterator[str]:
        await until(opened)
        yield "|".join(message.content for message in turn.messages)

    first, second = nodes.start({"waiting": waiting}, 2)
    talk = first.create_talk_session("ann", profile="waiting", busy="queue")
    first.add_message("ann", talk, "m0")
    eventually(lambda: first.roost.placement.run_of(talk))
    nodes.network.cut.add(nodes.id_of(first))
    second.add_message("ann", talk, "m1")
    first.add_message("ann", talk, "m2")
    opened.set()
    eventually(lambda: _ended(first, talk), 10)
    assert [m.content for m in everything(first, "ann", talk) if m.sender == "agent"] == ["m0", "m1|m2"]


@pytest.mark.parametrize("seed", range(2))
def test_tasks_are_handled_once_over_a_network_that_loses_some(nodes: Nodes, seed: int) -> None:
    handled: list[str] = []

    async def counting(turn: Turn) -> AsyncIterator[str]:
        handled.append(turn.text)
        yield turn.text

    nodes.network = MemoryNetwork(unreliable(seed))
    started = nodes.start({"counting": counting}, 3)
    for agent in "abcd":
        started[0].agents.create("ann", agent, profile="counting")
    tasks = [started[n % 3].tasks.send("ann", "abcd"[n % 4], f"t{n}") for n in range(24)]
    for number, task in enumerate(tasks):
        assert started[(number + 1) % 3].tasks.wait("ann", task, timeout=8).result == f"t{number}"
    assert sorted(handled) == sorted(f"t{n}" for n in range(24))


def test_a_message_interrupts_a_silent_run_of_a_node_that_is_cut_off(nodes: Nodes) -> None:
    first, second = nodes.start({"silent": silent}, 2)
    talk = first.create_talk_session("ann", profile="silent")
    first.add_message("ann", talk, "go")
    run = eventually(lambda: first.roost.placement.run_of(talk))
    nodes.network.cut.add(nodes.id_of(first))
    second.add_message("ann", talk, "instead")
    eventually(lambda: first.roost.placement.run_of(talk) not in (None, run), 5)
    again = first.roost.placement.run_of(talk)
    assert again is not None
    assert [e.seq for e in again.envelopes] == [1, 2]


def test_live_text_is_read_from_checkpoints_without_transport(nodes: Nodes) -> None:
    first, second = nodes.start({"endless": endless}, 2)
    talk = first.create_talk_session("ann", profile="endless")
    first.add_message("ann", talk, "go")
    nodes.network.cut.add(nodes.id_of(second))
    pieces = []
    for change in second.stream_messages("ann", talk):
        if change.message.sender == "agent":
            pieces.append(change.text)
        if len(pieces) == 3:
            break
    assert "".join(pieces).replace("on ", "") == ""
    first.stop("ann", talk, wait=5)
    eventually(lambda: str(second.get_messages("ann", talk).messages[-1].status) == "interrupted", 5)


def test_a_message_to_a_node_that_is_cut_off_is_answered_and_read(nodes: Nodes) -> None:
    first, second = nodes.start({"words": words}, 2)
    talk = first.create_talk_session("ann", profile="words")
    nodes.network.cut.update({nodes.id_of(first), nodes.id_of(second)})
    second.add_message("ann", talk, "go")
    text = "".join(c.text for c in second.stream_messages("ann", talk) if c.message.sender == "agent")
    assert text == "".join(f"w{number} " for number in range(120))


def test_a_talk_deleted_without_transport_is_gone_on_its_node_soon(nodes: Nodes) -> None:
    first, second = nodes.start({"silent": silent}, 2)
    talk = first.create_talk_session("ann", profile="silent")
    first.add_message("ann", talk, "go")
    eventually(lambda: first.roost.placement.run_of(talk))
    nodes.network.cut.add(nodes.id_of(first))
    second.delete("ann", talk)
    eventually(lambda: first.roost.placement.run_of(talk) is None, 5)
    with pytest.raises(NotFound):
        first.get_messages("ann", talk)


@pytest.mark.parametrize("act", ["stop", "delete", "cancel"])
def test_an_agents_work_ends_on_a_node_that_is_cut_off(nodes: Nodes, act: str) -> None:
    started = nodes.start({"silent": silent}, 2)
    home, [other] = awake_agent(started, "d", profile="silent")
    [activation] = home.roost.dispatcher.all()
    eventually(lambda: list(activation.works))
    [task] = other.tasks.list("ann")
    nodes.network.cut.add(nodes.id_of(home))
    if act == "cancel":
        other.tasks.cancel("ann", task.task_id)
    else:
        getattr(other.agents, act)("ann", "d")
    eventually(lambda: not list(activation.works), 5)


def test_an_agent_is_paused_and_configured_on_a_node_that_is_cut_off(nodes: Nodes) -> None:
    started = nodes.start({"silent": silent}, 2)
    home, [other] = awake_agent(started, "d", profile="silent", max_concurrent_tasks=1)
    [activation] = home.roost.dispatcher.all()
    nodes.network.cut.add(nodes.id_of(home))
    other.tasks.send("ann", "d", "more")
    other.agents.configure("ann", "d", max_concurrent_tasks=2)
    eventually(lambda: len(list(activation.works)) == 2, 5)
    other.agents.pause("ann", "d")
    for task in other.tasks.list("ann"):
        other.tasks.cancel("ann", task.task_id)
    eventually(lambda: not home.roost.dispatcher.is_awake("ann/d"), 5)
