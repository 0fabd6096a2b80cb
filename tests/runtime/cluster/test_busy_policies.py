"""T3 in a cluster: what a message does to a busy talk does not depend on the node that gets it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from roost import Busy
from roost.ports import Turn
from roost.service import AgentService
from tests.conftest import eventually, everything, settled
from tests.runtime.cluster.brains import echo, endless, silent, until
from tests.runtime.cluster.conftest import Nodes

pytestmark = pytest.mark.postgres


def _busy(first: AgentService, second: AgentService, talk: str) -> None:
    """Send a message on the first node; return when the second one sees the start of the answer."""
    first.add_message("ann", talk, "go")
    eventually(lambda: len(second.get_messages("ann", talk).messages) == 2)


def test_a_queued_message_of_another_node_is_answered_after_the_run(nodes: Nodes) -> None:
    opened = threading.Event()

    async def gate(turn: Turn) -> AsyncIterator[str]:
        yield "start "
        await until(opened)
        yield turn.text

    first, second = nodes.start({"gate": gate}, 2)
    talk = first.create_talk_session("ann", profile="gate", busy="queue")
    _busy(first, second, talk)
    second.add_message("ann", talk, "next")
    opened.set()
    assert [m.content for m in settled(second, "ann", talk)] == ["go", "start go", "next", "start next"]


def test_a_message_to_a_busy_talk_is_rejected_on_every_node(nodes: Nodes) -> None:
    first, second = nodes.start({"endless": endless}, 2)
    talk = first.create_talk_session("ann", profile="endless", busy="reject")
    _busy(first, second, talk)
    for node in (first, second):
        with pytest.raises(Busy):
            node.add_message("ann", talk, "no")
    first.stop("ann", talk, wait=5)
    assert len(everything(second, "ann", talk)) == 2


def test_a_message_of_another_node_rolls_the_answer_back(nodes: Nodes) -> None:
    first, second = nodes.start({"endless": endless}, 2)
    talk = first.create_talk_session("ann", profile="endless", busy="rollback")
    _busy(first, second, talk)
    second.add_message("ann", talk, "instead")
    eventually(lambda: len(first.get_messages("ann", talk).messages) == 4)
    for node in (first, second):
        found = everything(node, "ann", talk)
        assert [(m.content, str(m.status)) for m in found[:3]] == [
            ("go", "complete"),
            ("", "withdrawn"),
            ("instead", "complete"),
        ]
    second.stop("ann", talk, wait=5)


def test_a_message_of_another_node_steers_the_run(nodes: Nodes) -> None:
    async def steered(turn: Turn) -> AsyncIterator[str]:
        yield "first "
        while not (more := turn.steered()):  # noqa: ASYNC110 — a brain asks for them
            await asyncio.sleep(0.005)
        yield more[0].content

    first, second = nodes.start({"gate": steered}, 2)
    talk = first.create_talk_session("ann", profile="gate", busy="steer")
    _busy(first, second, talk)
    second.add_message("ann", talk, "left")
    assert [m.content for m in settled(second, "ann", talk)] == ["go", "first ", "left", "left"]


def test_a_steering_message_whose_notice_is_doubled_is_given_to_the_brain_once(nodes: Nodes) -> None:
    taken: list[str] = []

    async def steered(turn: Turn) -> AsyncIterator[str]:
        yield "first "
        while not taken or taken[-1] != "end":
            taken.extend(m.content for m in turn.steered())
            await asyncio.sleep(0.005)
        yield "done"

    def twice(receive: Callable[[bytes], None], message: bytes) -> None:
        receive(message)
        receive(message)

    nodes.network.carry = twice
    first, second = nodes.start({"steered": steered}, 2)
    talk = first.create_talk_session("ann", profile="steered", busy="steer")
    _busy(first, second, talk)
    for text in ("left", "right", "end"):
        second.add_message("ann", talk, text)
    found = settled(second, "ann", talk)
    assert taken == ["left", "right", "end"]
    assert [m.content for m in found if m.sender == "user"] == ["go", "left", "right", "end"]


def test_messages_of_all_nodes_are_collected_into_one_answer(nodes: Nodes) -> None:
    started = nodes.start({"echo": echo}, 3)
    talk = started[0].create_talk_session("ann", profile="echo", busy="collect")
    for number, node in enumerate(started):
        node.add_message("ann", talk, str(number))
    found = settled(started[2], "ann", talk)
    assert [m.content for m in found] == ["0", "1", "2", "0|1|2"]


def test_a_burst_from_all_nodes_is_answered_in_order_and_each_message_once(nodes: Nodes) -> None:
    started = nodes.start({"echo": echo}, 3)
    talk = started[0].create_talk_session("ann", profile="echo", busy="queue")
    with ThreadPoolExecutor(6) as pool:
        sent = list(pool.map(lambda n: started[n % 3].add_message("ann", talk, f"m{n}"), range(60)))
    assert (
        sorted(m.seq for m in sent) == [m.seq for m in everything(started[1], "ann", talk) if m.sender == "user"][:60]
    )
    eventually(lambda: not started[1].get_messages("ann", talk).running)
    found = everything(started[2], "ann", talk)
    assert [m.seq for m in found] == list(range(1, len(found) + 1))
    answered = "|".join(m.content for m in found if m.sender == "agent").split("|")
    assert answered == [m.content for m in found if m.sender == "user"]
    assert len(set(answered)) == 60
    assert all(str(m.status) == "complete" for m in found)


def test_interrupting_messages_of_all_nodes_lead_to_one_answer_that_sees_all(nodes: Nodes) -> None:
    started = nodes.start({"silent": silent}, 3)
    talk = started[0].create_talk_session("ann", profile="silent")
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: started[n % 3].add_message("ann", talk, f"m{n}"), range(30)))
    eventually(lambda: all(len(everything(node, "ann", talk)) == 30 for node in started))
    receipt = started[2].stop("ann", talk, wait=5)
    assert receipt.quiesced is not None
    assert all(not node.get_messages("ann", talk).running for node in started)
