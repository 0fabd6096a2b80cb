"""`turn.state` of an agent that other nodes edit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from roost.ports import Turn
from tests.conftest import eventually
from tests.runtime.cluster.conftest import Nodes, awake_agent

pytestmark = pytest.mark.postgres


async def counting(turn: Turn) -> AsyncIterator[str]:
    turn.state["n"] = turn.state.get("n", 0) + 1
    yield str(turn.state["n"])


def test_a_late_copy_of_an_edit_does_not_undo_what_followed_it(nodes: Nodes) -> None:
    copies: list[tuple[Callable[[bytes], None], bytes]] = []

    def carry(receive: Callable[[bytes], None], message: bytes) -> None:
        if b'"agent_changed"' in message:
            copies.append((receive, message))
        receive(message)

    nodes.network.carry = carry
    started = nodes.start({"counting": counting}, 2)
    _, [other] = awake_agent(started, "d", profile="counting")

    def count() -> str | None:
        return other.tasks.wait("ann", other.tasks.send("ann", "d", "count"), timeout=5).result

    other.agents.set_state("ann", "d", {"n": 10})
    eventually(lambda: int(count() or 0) > 10, 5)
    other.agents.set_state("ann", "d", {"n": 20})
    eventually(lambda: int(count() or 0) > 20, 5)
    before = int(count() or 0)
    for receive, message in copies:
        receive(message)
    assert [count() for _ in range(3)] == [str(before + number) for number in (1, 2, 3)]
