"""C4: readers, requests and mail over a network that loses, doubles and delays messages."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from roost.ports import Turn
from roost.runtime import missed_changes
from roost.service import AgentService
from roost.transports.memory import MemoryNetwork
from tests.conftest import eventually, everything
from tests.runtime.cluster.brains import echo, endless, silent, words
from tests.runtime.cluster.conftest import Nodes
from tests.runtime.cluster.test_network import unreliable

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize("seed", range(2))
def test_a_stream_over_a_network_that_loses_messages_has_the_whole_text(nodes: Nodes, seed: int) -> None:
    nodes.network = MemoryNetwork(unreliable(seed))
    first, second = nodes.start({"words": words}, 2)
    talk = first.create_talk_session("ann", profile="words")
    second.add_message("ann", talk, "go")
    changes = [change for change in second.stream_messages("ann", talk) if change.message.sender == "agent"]
    assert not any(change.reset for change in changes)
    assert "".join(change.text for change in changes) == everything(first, "ann", talk)[-1].content


@pytest.mark.parametrize("seed", range(2))
def test_agents_ask_each_other_once_over_a_network_that_loses_messages(nodes: Nodes, seed: int) -> None:
    asked: list[str] = []

    async def asking(turn: Turn) -> AsyncIterator[str]:
        yield "+".join([await turn.ask(f"agent:e{number}", f"q{number}") for number in range(3)])

    async def answering(turn: Turn) -> AsyncIterator[str]:
        asked.append(turn.text)
        yield turn.text

    nodes.network = MemoryNetwork(unreliable(seed))
    started = nodes.start({"asking": asking, "answering": answering}, 2)
    for number in range(3):
        started[0].agents.create("ann", f"e{number}", profile="answering")
    started[0].agents.create("ann", "d", profile="asking")
    task = started[1].tasks.send("ann", "d", "ask")
    assert started[1].tasks.wait("ann", task, timeout=25).result == "q0+q1+q2"
    assert sorted(asked) == ["q0", "q1", "q2"]


@pytest.mark.parametrize("seed", range(2))
def test_interrupted_answers_over_a_network_that_loses_messages_leave_a_gapless_talk(nodes: Nodes, seed: int) -> None:
    nodes.network = MemoryNetwork(unreliable(seed))
    started = nodes.start({"endless": endless, "echo": echo}, 3)
    talk = started[0].create_talk_session("ann", profile="endless")
    for number in range(6):
        started[number % 3].add_message("ann", talk, f"m{number}")
        eventually(lambda: started[0].roost.placement.run_of(talk), 6)
    started[1].stop("ann", talk, wait=2)
    eventually(lambda: started[0].roost.placement.run_of(talk) is None, 6)
    eventually(lambda: all(not node.get_messages("ann", talk).running for node in started), 6)
    found = everything(started[2], "ann", talk)
    assert [m.seq for m in found] == list(range(1, len(found) + 1))
    assert [m.content for m in found if m.sender == "user"] == [f"m{number}" for number in range(6)]
    assert not any(str(m.status) == "streaming" for m in found)
    assert everything(started[0], "ann", talk) == found


def test_stops_whose_notices_were_lost_are_found_though_a_check_compares_few_agents(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(missed_changes, "MOST", 2)
    started = nodes.start({"silent": silent}, 2)
    agents = [f"d{number}" for number in range(7)]
    started[0].agents.create_many("ann", agents, profile="silent")
    for agent in agents:
        started[0].tasks.send("ann", agent, "wait")
    home = {agent: eventually(lambda agent=agent: _home(started, agent)) for agent in agents}  # type: ignore[misc]
    nodes.network.carry = lambda receive, message: None
    for agent in agents:
        [other] = [one for one in started if one is not home[agent]]
        other.agents.stop("ann", agent)
    eventually(lambda: not any(_home(started, agent) for agent in agents), 20)


def _home(started: list[AgentService], agent: str) -> AgentService | None:
    """Return the node on which an agent is awake."""
    return next((one for one in started if one.roost.dispatcher.is_awake(f"ann/{agent}")), None)
