"""A disabled user in a cluster: what runs on other nodes is stopped too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from roost.ports import Turn
from roost.runtime import supervisor
from roost.runtime.handlers.accounts import suspension
from roost.service import AgentService
from tests.conftest import eventually
from tests.runtime.cluster.brains import endless
from tests.runtime.cluster.conftest import Nodes

pytestmark = pytest.mark.postgres


class Work:
    """Brain that works until it is stopped."""

    def __init__(self) -> None:
        self.running = 0
        self.begun = 0

    async def __call__(self, turn: Turn) -> AsyncIterator[str]:
        self.running += 1
        self.begun += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.running -= 1
        yield "never"


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def started(nodes: Nodes, work: Work) -> list[AgentService]:
    """Three nodes, with agents of bob that work on at least two of them, and a talk of bob on each."""
    started = nodes.start({"work": work, "endless": endless}, 3)
    started[0].users.add("ann", "bob")
    for number, node in enumerate(started * 2):
        node.agents.create("bob", f"d{number}", profile="work")
        node.tasks.send("bob", f"d{number}", "work")
    for node in started:
        node.add_message("bob", node.create_talk_session("bob", profile="endless"), "go")
    eventually(lambda: work.running == 6 and sum(len(_running(node)) for node in started) == 3)
    assert sum(node.roost.dispatcher.count > 0 for node in started) >= 2
    return started


def _running(node: AgentService) -> list[str]:
    """Return the talks that are answered on a node."""
    placement = node.roost.placement
    return [talk for talk in placement.talk_ids() if placement.run_of(talk) is not None]


def _is_quiet(started: list[AgentService]) -> bool:
    return not any(_running(node) or node.roost.dispatcher.count for node in started)


def test_work_on_other_nodes_is_stopped_by_a_notice(
    started: list[AgentService], work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "CHECK", 3600.0)
    started[0].users.disable("ann", "bob")
    eventually(lambda: work.running == 0 and _is_quiet(started))
    started[1].users.enable("ann", "bob")
    eventually(lambda: work.running == 6)
    assert work.begun == 12, "unfinished work is repeated"


def test_work_is_stopped_although_the_notice_is_lost(
    nodes: Nodes, started: list[AgentService], work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suspension, "MOST", 1)
    for node in started:  # their users are checked in turn
        for user in ("ann", "carl", "zoe"):
            node.add_message(user, node.create_talk_session(user, profile="endless"), "go")
    nodes.network.cut |= {nodes.id_of(one) for one in started}
    started[0].users.disable("ann", "bob")
    eventually(lambda: work.running == 0 and sum(len(_running(node)) for node in started) == 9)
    assert work.begun == 6


def test_work_is_stopped_although_the_node_of_the_admin_dies_first(
    started: list[AgentService], work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die(user_id: str) -> None:
        """Stop nothing."""

    monkeypatch.setattr(started[0].roost.users._suspensions, "stop", die)
    started[0].users.disable("ann", "bob")
    eventually(lambda: work.running == 0 and _is_quiet(started))
    assert work.begun == 6


def test_agents_and_talks_of_others_continue(nodes: Nodes, work: Work) -> None:
    first, second = nodes.start({"work": work, "endless": endless}, 2)
    first.users.add("ann", "bob")
    first.users.add("ann", "bobby")
    for user in ("bob", "bobby"):
        for number in range(4):
            first.agents.create(user, f"d{number}", profile="work")
            first.tasks.send(user, f"d{number}", "work")
    eventually(lambda: work.running == 8)
    second.users.disable("ann", "bob")
    eventually(lambda: work.running == 4)
    assert {one.address.partition("/")[0] for node in (first, second) for one in node.roost.dispatcher.all()} == {
        "bobby"
    }
