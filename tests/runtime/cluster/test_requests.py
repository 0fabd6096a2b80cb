"""Requests to agents of other nodes are handed over to them, and each is answered once."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable

import pytest

from roost.ports import Turn
from roost.runtime.cluster import notifier
from roost.service import AgentService
from tests.runtime.cluster.conftest import Nodes, awake_agent

pytestmark = pytest.mark.postgres
ASKED = 12


async def asker(turn: Turn) -> AsyncIterator[str]:
    """Ask an agent again and again; answer with the answers."""
    for number in range(ASKED):
        yield f"{await turn.ask('agent:d', str(number), deadline=20)} "


def _start(nodes: Nodes, answered: Counter[str]) -> tuple[AgentService, str]:
    """Start two nodes with an agent on one of them; return the other node, and an agent there that asks."""

    async def answerer(turn: Turn) -> AsyncIterator[str]:
        answered[turn.text] += 1
        yield f"<{turn.text}>"

    started = nodes.start({"asker": asker, "answerer": answerer}, 2)
    _, [other] = awake_agent(started, "d", profile="answerer")
    agent = _agent_on(other, "asker")
    other.tasks.wait("ann", other.tasks.send("ann", "d", "hello"), timeout=10)  # the owner of d is known now
    answered.clear()
    return other, agent


def _ask(node: AgentService, agent: str) -> str | None:
    return node.tasks.wait("ann", node.tasks.send("ann", agent, "go"), timeout=60).result


def _agent_on(node: AgentService, profile: str) -> str:
    """Create agents until one is awake on this node; return it."""
    for number in range(50):
        agent = f"{profile}{number}"
        node.agents.create("ann", agent, profile="answerer")
        node.tasks.wait("ann", node.tasks.send("ann", agent, "hello"), timeout=10)
        if node.roost.dispatcher.is_awake(f"ann/{agent}"):
            node.agents.configure("ann", agent, profile=profile)
            return agent
    raise AssertionError("no agent woke on this node")


ANSWERS = "".join(f"<{number}> " for number in range(ASKED))


def test_a_request_is_handed_over_to_the_node_of_its_agent(nodes: Nodes) -> None:
    answered: Counter[str] = Counter()
    node, agent = _start(nodes, answered)
    kinds: Counter[str] = Counter()

    def noted(receive: Callable[[bytes], None], message: bytes) -> None:
        verb, kind, *_ = json.loads(message)
        kinds[kind] += verb == "tell"
        receive(message)

    nodes.network.carry = noted
    assert _ask(node, agent) == ANSWERS
    assert kinds["request"] == ASKED
    assert kinds["look"] < ASKED / 2


@pytest.mark.parametrize("latest", [0.01, 0.7])
def test_requests_that_are_lost_doubled_and_late_are_answered_once(nodes: Nodes, latest: float) -> None:
    answered: Counter[str] = Counter()
    node, agent = _start(nodes, answered)
    rng, timers = random.Random(latest), []

    def unreliable(receive: Callable[[bytes], None], message: bytes) -> None:
        for _ in range(rng.choice((0, 1, 1, 2, 3)) if b'"request"' in message else 1):
            timer = threading.Timer(rng.uniform(0, latest), receive, (message,))
            timer.start()
            timers.append(timer)  # started: it is joined at once, if the requests are answered

    nodes.network.carry = unreliable
    assert _ask(node, agent) == ANSWERS
    for timer in timers:
        timer.join()
    assert node.tasks.wait("ann", node.tasks.send("ann", "d", "end"), timeout=10).result == "<end>"
    assert answered == Counter([*map(str, range(ASKED)), "end"])


def test_a_node_that_has_answered_a_request_ignores_a_late_one(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it is not too late to be handed over: another notice may have led to a claim before."""
    answered: Counter[str] = Counter()
    monkeypatch.setattr(notifier, "LATE", 60.0)
    node, agent = _start(nodes, answered)
    requests: list[tuple[Callable[[bytes], None], bytes]] = []

    def twice(receive: Callable[[bytes], None], message: bytes) -> None:
        receive(message)
        if b'"request"' in message:
            requests.append((receive, message))

    nodes.network.carry = twice
    assert _ask(node, agent) == ANSWERS
    for receive, message in requests:
        receive(message)
    assert node.tasks.wait("ann", node.tasks.send("ann", "d", "end"), timeout=10).result == "<end>"
    assert answered == Counter([*map(str, range(ASKED)), "end"])
