"""C5: a talk that runs on one node is read, answered and stopped on every other one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from roost.ports import Turn
from tests.conftest import eventually
from tests.runtime.cluster.conftest import Nodes

pytestmark = pytest.mark.postgres


async def words(turn: Turn) -> AsyncIterator[str]:
    for word in ("one ", "two ", "three"):
        yield word
        await asyncio.sleep(0.01)


async def endless(turn: Turn) -> AsyncIterator[str]:
    while True:
        yield "on "
        await asyncio.sleep(0.01)


def test_a_talk_is_streamed_on_a_node_that_neither_has_it_nor_got_its_message(nodes: Nodes) -> None:
    first, second, third = nodes.start({"words": words}, 3)
    talk = first.create_talk_session("ann", profile="words")
    second.add_message("ann", talk, "count")
    changes = list(third.stream_messages("ann", talk))
    assert "".join(change.text for change in changes if change.message.sender == "agent") == "one two three"
    stored = [(m.sender, m.content, str(m.status)) for m in first.get_messages("ann", talk).messages]
    assert stored == [("user", "count", "complete"), ("agent", "one two three", "complete")]
    assert [m.content for m in third.get_messages("ann", talk).messages] == ["count", "one two three"]


def test_a_message_on_another_node_interrupts_the_run(nodes: Nodes) -> None:
    first, second = nodes.start({"endless": endless}, 2)
    talk = first.create_talk_session("ann", profile="endless")
    first.add_message("ann", talk, "go")
    eventually(lambda: len(second.get_messages("ann", talk).messages) == 2)
    second.add_message("ann", talk, "instead")
    eventually(lambda: len(first.get_messages("ann", talk).messages) == 4)
    assert [str(m.status) for m in first.get_messages("ann", talk).messages][1] == "interrupted"
    second.stop("ann", talk, wait=10)


def test_a_stop_on_another_node_returns_a_receipt_of_the_run_itself(nodes: Nodes) -> None:
    first, second = nodes.start({"endless": endless}, 2)
    talk = first.create_talk_session("ann", profile="endless")
    first.add_message("ann", talk, "go")
    eventually(lambda: len(second.get_messages("ann", talk).messages) == 2)
    receipt = second.stop("ann", talk, wait=10)
    assert receipt.acknowledged is not None
    assert receipt.quiesced is not None
    assert receipt.requested <= receipt.acknowledged <= receipt.quiesced
    assert not first.get_messages("ann", talk).running
    assert first.roost.placement.run_of(talk) is None
