"""Three nodes from one seed: with whatever faults, all holds; and the run repeats exactly."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from roost import AsyncAgentService, Turn, Unavailable
from roost.testing import ClusterFaults, ClusterSimulation, cluster_invariants, insist, one_at_a_time, script
from roost.testing.cluster.faults import RATES
from roost.testing.cluster.simulation import Execution
from tests.conftest import ENVIRONMENT
from tests.testing.cluster_team import QUICK, simulate

ROOT = Path(__file__).parents[2]
FEW = 20
LONG = 300.0
"""Seconds of the long form."""
BOUNDARIES = [
    f"{moment} {operation}"
    for moment in ("before", "after")
    for operation in ("claim", "post", "settle", "evict", "disown", "drain", "release", "leave", "fire")
]


def test_a_team_on_three_nodes_bears_whatever_goes_wrong() -> None:
    happened: Counter[str] = Counter()
    for seed in range(FEW):
        happened += simulate(seed).happened
    wanted = {"message_lost", "message_doubled", "message_delayed", "commit_failed", "commit_crash", *RATES}
    assert wanted <= happened.keys(), "not all of it has happened"


@pytest.mark.soak
def test_a_team_on_three_nodes_bears_thousands_of_seeds() -> None:
    """Memory of crashed nodes is never freed, so that a process runs a hundred seeds only."""
    program = (
        "import logging, sys; logging.disable(50)\n"
        "from tests.testing.cluster_team import simulate\n"
        "first = int(sys.argv[1])\n"
        "for seed in range(first, first + 100):\n"
        "    print(*(f'{n}:{c}' for n, c in simulate(seed).boundaries.items()), sep='\\n')\n"
    )
    boundaries: Counter[str] = Counter()
    first, latest = 1_000, time.monotonic() + LONG
    while time.monotonic() < latest and first < 11_000:
        ran = _python(program, str(first))
        for line in filter(None, ran.splitlines()):
            name, _, count = line.partition(":")
            boundaries[name] += int(count)
        first += 100
    print(f"{first - 1_000:,} seeds; crashes at commits: {dict(boundaries.most_common())}")
    assert [name for name in BOUNDARIES if not boundaries[name]] == []


def test_the_same_seed_gives_the_same_run_of_a_cluster_in_every_process() -> None:
    program = (
        "import logging; logging.disable(50)\n"
        "from roost.testing import ClusterFaults, ClusterSimulation\n"
        "from tests.testing.cluster_team import BRAINS, QUICK, story\n"
        "for seed in (1, 2):\n"
        "    with ClusterSimulation(seed=seed, faults=ClusterFaults.all()) as simulation:\n"
        "        simulation.play(story, BRAINS, QUICK)\n"
        "        print(simulation.digest(), len(simulation.turns), sorted(simulation.happened.items()))\n"
    )
    runs = [_python(program, seed=seed) for seed in ("1", "2")]
    assert runs[0] == runs[1]
    assert len(set(runs[0].splitlines())) == 2


def _python(program: str, *args: str, seed: str = "0") -> str:
    ran = subprocess.run(
        [sys.executable, "-c", program, *args],
        env={**ENVIRONMENT, "PYTHONHASHSEED": seed},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3_000:]
    return ran.stdout


async def slow(turn: Turn) -> AsyncIterator[str]:
    await asyncio.sleep(2.0)
    yield "done"


async def give_task(service: AsyncAgentService) -> str:
    await service.agents.create("ann", "d", profile="slow")
    return await service.tasks.send("ann", "d", "work")


def _home(simulation: ClusterSimulation) -> str:
    """Return the name of the node on which the agent is awake."""
    [name] = [name for name, node in simulation.nodes.items() if node.service.roost.dispatcher.is_awake("ann/d")]
    return name


@pytest.mark.parametrize("notices", [True, False])
def test_another_node_does_the_work_of_a_killed_one(notices: bool) -> None:
    with ClusterSimulation(nodes=2) as simulation:
        task = simulation.run(give_task(simulation.start({"slow": slow}, QUICK)))
        simulation.advance(1.0)
        killed = _home(simulation)
        start = simulation.clock.monotonic()
        simulation.kill(killed, notices=notices)
        done = simulation.run(insist(partial(simulation.service.tasks.wait, "ann", task)))
        assert done.result == "done"
        needed = simulation.clock.monotonic() - start - 2.0
        assert needed < 1.5 if notices else 1.0 < needed < 5.0
        assert [one.life.name for one in simulation.executions] == [killed, _home(simulation)]
        cluster_invariants(simulation)


def test_a_frozen_node_stops_before_another_one_works_and_writes_nothing_when_it_thaws() -> None:
    with ClusterSimulation(seed=1, nodes=2) as simulation:
        task = simulation.run(give_task(simulation.start({"slow": slow}, QUICK)))
        simulation.advance(0.5)
        frozen = _home(simulation)
        simulation.nodes[frozen].machine.freeze(10.0)
        simulation.advance(20.0)
        assert simulation.executions[0].life.name == frozen
        assert len(simulation.executions) == 2
        assert simulation.run(insist(partial(simulation.service.tasks.get, "ann", task))).attempts == 1
        assert len(simulation.nodes) == 2, "it has started anew"
        assert len(simulation.lives) == 3
        cluster_invariants(simulation)


def test_a_call_to_a_node_that_dies_fails_as_unavailable() -> None:
    with ClusterSimulation(nodes=1) as simulation:
        service = simulation.start({"slow": slow}, QUICK)
        task = simulation.run(give_task(service))
        simulation.machines.later(0.5, partial(simulation.kill, "node 1"))
        with pytest.raises(Unavailable, match="connection was lost"):
            simulation.run(service.tasks.wait("ann", task))
        with pytest.raises(Unavailable, match="no node is running"):
            simulation.run(service.tasks.wait("ann", task))


def test_executions_on_two_nodes_at_once_are_found() -> None:
    with ClusterSimulation(nodes=2) as simulation:
        simulation.start({"slow": slow}, QUICK)
        one, two = simulation.lives
        simulation.executions += [Execution(one, "ann/d", 0.0, 2.0), Execution(two, "ann/d", 1.0, 3.0)]
        with pytest.raises(AssertionError, match=r"ann/d on node 1 and node 2 from 1.000 to 2.000 s"):
            one_at_a_time(simulation)
        one.machine.freezes.append((0.9, 2.5))
        one_at_a_time(simulation)


def test_faults_of_a_cluster_say_how_to_repeat_them() -> None:
    faults = ClusterFaults.some(3)
    assert eval(repr(faults), {"ClusterFaults": ClusterFaults}) == faults
    with pytest.raises(AssertionError) as error, ClusterSimulation(seed=5, nodes=2, faults=faults) as simulation:
        simulation.start({"brain": script("hello")})
        raise AssertionError
    assert error.value.__notes__ == [f"Repeat it with ClusterSimulation(seed=5, nodes=2, faults={faults!r})"]


async def _configure(service: AsyncAgentService) -> str:
    talk = await service.create_talk_session("ann", profile="slow")
    await service.add_message("ann", talk, "one")
    await _answered(service, talk)
    await service.configure("ann", talk, profile="echo")
    await service.add_message("ann", talk, "two")
    return await _answered(service, talk)


async def _answered(service: AsyncAgentService, talk: str) -> str:
    while (page := await service.get_messages("ann", talk)).running:  # noqa: ASYNC110 — streams cannot be called
        await asyncio.sleep(0.05)
    return page.messages[-1].content


def test_a_message_after_a_change_of_settings_is_answered_with_them_on_whichever_nodes() -> None:
    for seed in range(40):  # nine is the first one that needs the revision of the change
        with ClusterSimulation(seed=seed, nodes=3) as simulation:
            assert simulation.play(_configure, {"echo": script("two"), "slow": script("one")}) == "two", seed
