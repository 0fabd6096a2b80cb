"""Ids in a cluster are ordered by the time of the database, whatever the clocks of the machines show."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from roost.hosts import store_clock
from roost.service import AgentService
from tests.runtime.cluster.brains import echo
from tests.runtime.cluster.conftest import Nodes

pytestmark = pytest.mark.postgres
HOUR = 3_600.0


def start_wrong(nodes: Nodes, ahead: float) -> AgentService:
    """Start a node on a machine whose clock is wrong."""
    with pytest.MonkeyPatch.context() as patch:
        clocks = SimpleNamespace(time=lambda: time.time() + ahead, monotonic=time.monotonic)
        patch.setattr(store_clock, "time", clocks)
        [made] = nodes.start({"echo": echo})
    return made


@pytest.mark.parametrize("ahead", [HOUR, -HOUR])
def test_ids_of_a_new_owner_sort_after_those_of_the_old_one(nodes: Nodes, ahead: float) -> None:
    first, second = start_wrong(nodes, ahead), start_wrong(nodes, -ahead)
    talk = first.create_talk_session("ann", profile="echo")
    first.agents.create("ann", "d", profile="echo")
    before = [first.tasks.send("ann", "d", "one"), talk, first.mail.send("ann", "agent:d", "one", "one")]
    assert first.tasks.wait("ann", before[0]).result == "one"
    first.close()
    after = [
        second.tasks.send("ann", "d", "two"),
        second.create_talk_session("ann", profile="echo"),
        second.mail.send("ann", "agent:d", "two", "two"),
    ]
    assert second.tasks.wait("ann", after[0]).result == "two"
    assert [old < new for old, new in zip(before, after, strict=True)] == [True, True, True]
