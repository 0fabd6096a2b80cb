"""Profiles that only some nodes of a cluster know: their agents and talks run there, or wait."""

from __future__ import annotations

import pytest

from tests.conftest import eventually, everything, settled
from tests.runtime.cluster.brains import echo
from tests.runtime.cluster.conftest import Nodes

pytestmark = pytest.mark.postgres


def test_an_agent_runs_where_its_profile_is_known(nodes: Nodes) -> None:
    [plain, _] = nodes.start({"echo": echo}, 2)
    [special] = nodes.start({"echo": echo, "special": echo})
    for number in range(5):
        special.agents.create("ann", f"d{number}", profile="special")
        task = plain.tasks.send("ann", f"d{number}", "hello")
        assert plain.tasks.wait("ann", task, timeout=4).result == "hello"
    assert special.roost.dispatcher.count == 5


def test_an_agent_waits_while_no_node_knows_its_profile(nodes: Nodes) -> None:
    [plain] = nodes.start({"echo": echo})
    [special] = nodes.start({"echo": echo, "special": echo})
    special.agents.create("ann", "d", profile="special")
    assert plain.tasks.wait("ann", plain.tasks.send("ann", "d", "one"), timeout=4).result == "one"
    special.close()
    nodes.services.remove(special)
    task = plain.tasks.send("ann", "d", "two")
    assert plain.tasks.wait("ann", task, timeout=0.5).status == "queued"
    nodes.start({"echo": echo, "special": echo})
    ended = plain.tasks.wait("ann", task, timeout=5)
    assert (ended.result, ended.attempts) == ("two", 1)


def test_an_agent_moves_when_it_gets_a_profile_that_only_another_node_knows(nodes: Nodes) -> None:
    [plain] = nodes.start({"echo": echo})
    plain.agents.create("ann", "d", profile="echo")
    plain.tasks.wait("ann", plain.tasks.send("ann", "d", "one"), timeout=4)
    assert plain.roost.dispatcher.is_awake("ann/d")
    [special] = nodes.start({"echo": echo, "special": echo})
    special.agents.configure("ann", "d", profile="special")
    plain.agents.pause("ann", "d")
    eventually(lambda: not plain.roost.dispatcher.is_awake("ann/d"))
    plain.agents.resume("ann", "d")
    task = plain.tasks.send("ann", "d", "two")
    assert special.tasks.wait("ann", task, timeout=5).result == "two"


def test_a_talk_is_answered_where_its_profile_is_known(nodes: Nodes) -> None:
    plain = nodes.start({"echo": echo}, 2)
    [special] = nodes.start({"echo": echo, "special": echo})
    talk = special.create_talk_session("ann", profile="special")
    plain[0].add_message("ann", talk, "one")
    assert settled(plain[1], "ann", talk)[-1].content == "one"
    special.close()
    nodes.services.remove(special)
    plain[0].add_message("ann", talk, "two")
    nodes.start({"echo": echo, "special": echo})
    eventually(lambda: not plain[0].get_messages("ann", talk).running, 6)
    assert [m.content for m in everything(plain[1], "ann", talk)] == ["one", "one", "two", "two"]
