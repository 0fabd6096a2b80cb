"""A turn that kills its node, on three simulated nodes: it becomes a dead letter, and its neighbours are not harmed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.testing import ClusterFaults, ClusterSimulation, aeventually, insist, one_at_a_time
from roost.testing.cluster.simulation import SHORT, Execution

LIMITS = roost.Limits(drain=0.3, stop_patience=0.15, attempts=1)
HEALTHY = tuple(f"healthy {number}" for number in range(4))
NEIGHBOURS = ("near", "far", "wide")
WORK = 0.5
TRIES = 2
TAKEOVER = SHORT.length + 1.0
"""Seconds until others continue the work of a node that was killed without notice."""
QUARANTINED = 2 * len(NEIGHBOURS) * WORK
"""Seconds for which work may wait in quarantine for other work that ran on the same node."""
MISSED = 1
"""Deaths after which another task of the agent may be the suspect: starts are not recorded."""
LOST_COPIES = ClusterFaults(message_lost=0.3, message_doubled=0.1, message_delayed=0.2)


@dataclass
class Poisoned:
    """Simulation in which the text `poison` kills the node where it runs."""

    simulation: ClusterSimulation
    kind: str
    """Kind of the turn that does: `task` or `talk`."""
    deaths: list[tuple[float, Execution]] = field(default_factory=list)

    async def brain(self, turn: Turn) -> AsyncIterator[str]:
        if turn.text == "poison":
            await asyncio.sleep(0.2)
            address = f"ann/{turn.agent_id}" if turn.agent_id else turn.talk_session_id
            own = next(e for e in reversed(self.simulation.executions) if e.address == address)
            self.simulation.machines.later(0.0, partial(self._die, own))
            await asyncio.Event().wait()
        await asyncio.sleep(WORK)
        yield f"did {turn.text}"

    def _die(self, execution: Execution) -> None:
        self.deaths.append((self.simulation.clock.monotonic(), execution))
        self.simulation.crash_node(execution.life.name)

    async def story(self, service: AsyncAgentService) -> None:
        for name in ("bad", *NEIGHBOURS):
            tries = TRIES if name == "bad" else 1
            with contextlib.suppress(roost.Conflict):
                await insist(partial(service.agents.create, "ann", name, profile="brain", max_attempts=tries))
        talks = [await insist(partial(service.create_talk_session, "ann", profile="brain")) for _ in range(2)]
        first, second = ("poison", "fine") if self.kind == "task" else ("fine", "poison")
        tasks = [("bad", first), *((name, f"{name} {text}") for name in ("bad", *NEIGHBOURS) for text in HEALTHY)]
        for name, text in tasks:
            await insist(partial(service.tasks.send, "ann", name, text, key=text))
        for talk, text in zip(talks, (second, "hello"), strict=True):
            await insist(partial(service.add_message, "ann", talk, text, key=text))
        await aeventually(partial(_is_over, service, len(tasks)), within=600)


async def _is_over(service: AsyncAgentService, count: int) -> bool:
    tasks = await insist(partial(service.tasks.list, "ann"))
    return len(tasks) >= count and all(task.is_over for task in tasks)


@pytest.mark.parametrize("kind", ["task", "talk"])
@pytest.mark.parametrize(
    ("first", "count"), [(0, 8), *(pytest.param(first, 50, marks=pytest.mark.soak) for first in range(50, 500, 50))]
)
def test_a_turn_that_kills_its_node_is_given_up_and_its_neighbours_are_done_in_time(
    kind: str, first: int, count: int
) -> None:
    for seed in range(first, first + count):
        with ClusterSimulation(seed=seed, faults=LOST_COPIES) as simulation:
            poisoned = Poisoned(simulation, kind)
            simulation.play(poisoned.story, {"brain": poisoned.brain}, LIMITS)
            check(poisoned)


def check(poisoned: Poisoned) -> None:
    """Check that what kills was given up after its attempts, and that all else was done, without a counted attempt."""
    simulation, is_task = poisoned.simulation, poisoned.kind == "task"
    letters = simulation.rows("SELECT address, kind, fault, attempts FROM dead_letters")
    assert letters == [("ann/bad", "task", "lost_worker", TRIES)][:is_task]
    tasks = simulation.rows("SELECT prompt, status, result, attempts FROM tasks WHERE prompt <> 'poison'")
    assert {(status, result == f"did {text}", attempts) for text, status, result, attempts in tasks} == {
        ("done", True, 1)
    }
    answers = simulation.rows("SELECT status, content FROM messages WHERE sender = 'agent' AND status <> 'interrupted'")
    of_other = ("complete", "did fine") if is_task else ("failed", "")
    assert sorted(answers) == sorted([("complete", "did hello"), of_other])
    deaths = 2 + (TRIES if is_task else LIMITS.attempts)  # as itself, as a suspect, and in quarantine
    assert deaths <= len(poisoned.deaths) <= deaths + MISSED
    one_at_a_time(simulation)
    for execution in simulation.executions:
        check_neighbour(poisoned, execution)


def check_neighbour(poisoned: Poisoned, execution: Execution) -> None:
    """Check that a turn ran without a break, or was lost with its node and ran again soon."""
    if any(execution is killer for _, killer in poisoned.deaths):
        return
    assert execution.end is not None
    lost = [when for when, killer in poisoned.deaths if killer.life is execution.life and when == execution.end]
    if not lost:
        assert execution.end - execution.start == pytest.approx(WORK, abs=0.1)
        return
    again = min(
        one.start
        for one in poisoned.simulation.executions
        if one.address == execution.address and one.start >= execution.end
    )
    last = max(when for when, _ in poisoned.deaths if when <= again)
    assert again - last <= TAKEOVER + QUARANTINED, execution.address
