"""Approvals and meetings in a cluster: people and agents on different nodes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from roost.ports import Turn
from roost.service import AgentService
from tests.conftest import QUICK, eventually, everything
from tests.runtime.cluster.conftest import Nodes
from tests.runtime.journal.test_approvals import paying

pytestmark = pytest.mark.postgres


async def talker(turn: Turn) -> AsyncIterator[str]:
    """Answer what a person says in a meeting, once."""
    said = [message.content for message in turn.messages if message.sender.startswith("user:")]
    if turn.kind == "meeting" and said:
        yield f"heard {said[-1]}"


def _texts(node: AgentService, meeting: str, seen_by: str | None = None) -> list[str]:
    return [said.text for said in node.meetings.view("ann", meeting, seen_by=seen_by).words]


def test_a_meeting_of_agents_on_different_nodes_has_one_view(nodes: Nodes) -> None:
    started = nodes.start({"talker": talker}, 3)
    names = [f"agent:d{number}" for number in range(5)]
    for name in names:
        started[0].agents.create("ann", name.removeprefix("agent:"), profile="talker")
    meeting = started[1].meetings.call("ann", "news", required=names)
    eventually(lambda: len(started[2].meetings.view("ann", meeting).present) == 6, 8)
    started[2].meetings.say("ann", meeting, "hello")
    eventually(lambda: all(len(_texts(started[0], meeting, name)) == 6 for name in (None, *names)), 8)
    views = [_texts(node, meeting, by) for node in started for by in (None, *names)]
    assert all(view == views[0] for view in views)
    assert views[0] == ["hello", *["heard hello"] * 5]


def test_a_person_follows_a_meeting_on_another_node(nodes: Nodes) -> None:
    first, second = nodes.start({"talker": talker}, 2)
    first.agents.create("ann", "d", profile="talker")
    meeting = first.meetings.call("ann", "news", required=["agent:d"])
    eventually(lambda: len(second.meetings.view("ann", meeting).present) == 2, 8)
    view = second.meetings.view("ann", meeting)
    first.meetings.say("ann", meeting, "hello")
    while len(view.words) < 2:
        before, view = view, second.meetings.wait("ann", meeting, view.cursor, timeout=4)
        assert view.cursor != before.cursor
    assert [said.text for said in view.words] == ["hello", "heard hello"]


@pytest.mark.parametrize("rest_after", [0.05, 60.0])
def test_an_approval_is_granted_on_any_node(nodes: Nodes, rest_after: float) -> None:
    acted: list[str] = []
    brains, tools = paying(acted)
    started = nodes.start(brains, 3, tools=tools, limits=replace(QUICK, rest_after=rest_after))
    started[0].agents.create("ann", "d", profile="pays", max_attempts=1)
    task = started[0].tasks.send("ann", "d", "pay")
    talk = started[1].create_talk_session("ann", profile="pays")
    started[1].add_message("ann", talk, "pay")
    eventually(lambda: len(started[2].approvals.list("ann")) == 2, 5)
    for approval in started[2].approvals.list("ann"):
        started[2].approvals.approve("ann", approval.approval_id)
    assert started[1].tasks.wait("ann", task, timeout=5).result == "bill of 5: 5 paid"
    eventually(lambda: not started[0].get_messages("ann", talk).running, 5)
    assert everything(started[0], "ann", talk)[-1].content.endswith("5 paid")
    assert len(acted) == 4
