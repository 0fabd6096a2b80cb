"""Nodes on machines whose clocks are wrong: the time of the database counts."""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.cluster.processes import Cluster, cluster
from tests.conftest import eventually
from tests.servers import fresh_store

pytestmark = [pytest.mark.postgres, pytest.mark.journey]
HOUR = 3_600.0
MODULE = Path(__file__).with_name("wrong_clock")


def wrong(seconds: float) -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(MODULE), os.environ.get("PYTHONPATH")]))
    return {"PYTHONPATH": path, "WRONG_CLOCK": str(seconds)}


def ended_texts(made: Cluster) -> int:
    return sum(len(words[1].split("+")) for _, _, words in made.ledger() if words[0] == "end")


@pytest.mark.soak
@pytest.mark.timeout(120)
def test_nodes_with_wrong_clocks_fire_timers_once_at_the_time_of_the_database(tmp_path: Path, postgres: str) -> None:
    clocks = {"a": wrong(HOUR), "b": wrong(-HOUR)}
    with (
        fresh_store(postgres) as store,
        cluster(tmp_path, store, "a", "b", "c", environment=clocks) as made,
        ExitStack() as stack,
    ):
        services = {name: stack.enter_context(node.connect()) for name, node in made.nodes.items()}
        eventually(lambda: len(services["c"].nodes.list("ann")) == 3)
        before = {node.node_id for node in services["c"].nodes.list("ann")}
        due = time.time() + 6.0
        for number in range(12):
            services["c"].agents.create("ann", f"d{number}", profile="worker")
        for number in range(12):
            services["abc"[number % 3]].schedules.create(
                "ann", f"agent:d{number}", f"s{number}", at=datetime.fromtimestamp(due, UTC)
            )
        assert time.time() < due, "the machine is too slow for this test"
        talk = services["a"].create_talk_session("ann", profile="worker")
        for number in range(9):
            services["abc"[number % 3]].add_message("ann", talk, f"m{number}", busy="queue")
        eventually(lambda: ended_texts(made) == 21, 60)
        offset = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        begun = [
            (when + offset, text)
            for when, _, words in made.ledger()
            if words[0] == "begin"
            for text in words[1].split("+")
        ]
        ticks = {word: when for when, word in begun if word.startswith("s")}
        assert Counter(word for _, word in begun if word[0] == "s") == {f"s{number}": 1 for number in range(12)}
        assert min(ticks.values()) >= due - 0.1
        assert max(ticks.values()) < due + 10
        said = [row.content for row in services["b"].get_messages("ann", talk).messages if row.sender == "user"]
        assert said == [f"m{number}" for number in range(9)]
        assert [word for _, word in begun if word[0] == "m"] == said
        assert {node.node_id for node in services["c"].nodes.list("ann")} == before
        assert "clock was" not in "".join(node.output for node in made.nodes.values())
