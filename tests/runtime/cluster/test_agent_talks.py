"""Talks with agents in a cluster: they belong to the node of the agent."""

from __future__ import annotations

import pytest

from roost.service import AgentService
from tests.conftest import eventually, everything, settled
from tests.runtime.cluster.brains import echo, endless, words
from tests.runtime.cluster.conftest import Nodes, awake_agent

pytestmark = pytest.mark.postgres


def _awake_on(started: list[AgentService], agent: str) -> list[int]:
    return [n for n, one in enumerate(started) if one.roost.dispatcher.is_awake(f"ann/{agent}")]


def test_a_talk_with_an_agent_is_answered_whatever_node_gets_the_message(nodes: Nodes) -> None:
    started = nodes.start({"echo": echo}, 3)
    started[0].agents.create("ann", "d", profile="echo")
    talk = started[1].create_talk_session("ann", agent="d", busy="queue")
    for number, node in enumerate(started):
        node.add_message("ann", talk, f"m{number}")
    found = settled(started[2], "ann", talk)
    assert "|".join(m.content for m in found if m.sender == "agent") == "m0|m1|m2"
    assert len(_awake_on(started, "d")) == 1


def test_an_answer_of_an_agent_is_streamed_on_other_nodes(nodes: Nodes) -> None:
    started = nodes.start({"words": words}, 3)
    home, others = awake_agent(started, "d", profile="words")
    talk = others[0].create_talk_session("ann", agent="d")
    others[0].add_message("ann", talk, "go")
    text = "".join(c.text for c in others[1].stream_messages("ann", talk) if c.message.sender == "agent")
    assert text == everything(home, "ann", talk)[-1].content == "".join(f"w{number} " for number in range(120))


def test_an_answer_of_an_agent_is_stopped_and_interrupted_on_another_node(nodes: Nodes) -> None:
    started = nodes.start({"endless": endless}, 2)
    started[0].agents.create("ann", "d", profile="endless")
    talk = started[0].create_talk_session("ann", agent="d")
    started[0].add_message("ann", talk, "go")
    eventually(lambda: all(len(one.get_messages("ann", talk).messages) == 2 for one in started))
    [home] = _awake_on(started, "d")
    other = started[1 - home]
    other.add_message("ann", talk, "instead")
    eventually(lambda: len(other.get_messages("ann", talk).messages) == 4)
    receipt = other.stop("ann", talk, wait=5)
    assert receipt.acknowledged is not None
    assert receipt.quiesced is not None
    statuses = [str(m.status) for m in everything(started[home], "ann", talk)]
    assert statuses == ["complete", "interrupted", "complete", "interrupted"]
    assert statuses == [str(m.status) for m in everything(other, "ann", talk)]


@pytest.mark.parametrize("where", [0, 1])
def test_a_sleeping_agent_wakes_for_a_message_on_any_node(nodes: Nodes, where: int) -> None:
    started = nodes.start({"echo": echo}, 2)
    started[0].agents.create("ann", "d", profile="echo")
    started[0].agents.sleep("ann", "d")
    talk = started[0].create_talk_session("ann", agent="d")
    started[where].add_message("ann", talk, "wake up")
    assert settled(started[1 - where], "ann", talk)[-1].content == "wake up"
    assert started[where].agents.get("ann", "d").state == "idle"


def test_an_agent_that_slept_on_its_node_wakes_there_for_a_message_elsewhere(nodes: Nodes) -> None:
    started = nodes.start({"echo": echo}, 2)
    home, [other] = awake_agent(started, "d", profile="echo")
    other.agents.sleep("ann", "d")
    eventually(lambda: not home.roost.dispatcher.is_awake("ann/d"))
    talk = other.create_talk_session("ann", agent="d")
    other.add_message("ann", talk, "wake up")
    assert settled(other, "ann", talk)[-1].content == "wake up"
    assert everything(home, "ann", talk) == everything(other, "ann", talk)
