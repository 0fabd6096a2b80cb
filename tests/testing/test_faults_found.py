"""Defects that the simulation has found, by the faults that showed them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.testing import Faults, Simulation, nothing_twice, script, simulated
from tests.testing.team import BRAINS, QUICK, check, story

SEEDS = 15


@pytest.mark.parametrize("first", [0, *(pytest.param(n * SEEDS, marks=pytest.mark.soak) for n in range(1, 20))])
@pytest.mark.parametrize(
    "faults",
    [
        pytest.param(Faults(commit_failed=0.1), id="an older memory is not written after a newer one"),
        pytest.param(Faults(bell_lost=0.2), id="an agent whose timer fired wakes up"),
        pytest.param(Faults(handover_doubled=0.2, handover_delayed=0.2), id="a try of what is over sends nothing"),
        pytest.param(Faults(commit_unknown=0.1), id="what was posted by an unknown commit is not overtaken"),
    ],
)
def test_a_team_bears_this(faults: Faults, first: int) -> None:
    happened: Counter[str] = Counter()
    for seed in range(first, first + SEEDS):
        with Simulation(seed=seed, faults=faults) as simulation:
            simulation.play(story, BRAINS, QUICK)
            check(simulation)
            happened += simulation.happened
    assert set(happened) == {name for name, chance in faults.chances.items() if chance}


@pytest.mark.parametrize("together", [True, False], ids=["both times", "one with an event, or the other"])
def test_a_sleeping_agent_that_waits_for_several_times_wakes(together: bool) -> None:
    with simulated(script("done")) as simulation:
        first, second = (roost.at(simulation.clock.time + timedelta(seconds=n)) for n in (5, 10))
        condition = (
            roost.all_of(first, second) if together else roost.any_of(roost.all_of(first, roost.event("x")), second)
        )

        async def sleep(service: AsyncAgentService) -> None:
            await service.agents.create("ann", "d")
            await service.agents.sleep("ann", "d", wake_on=condition)

        simulation.run(sleep(simulation.service))
        simulation.advance(60)
        assert simulation.run(simulation.service.agents.get("ann", "d")).state == "idle"


@pytest.mark.parametrize("what", ["mail", "message"])
def test_a_message_leaves_once_although_its_commit_is_uncertain(what: str) -> None:
    async def sender(turn: Turn) -> AsyncIterator[str]:
        if what == "mail":
            await turn.mail("user:ann", "hello", "there")
        else:
            await turn.send("agent:taker", "hello")
        outcomes = ["done"]  # of the commit that posts it, while the turn continues
        assert simulation.database is not None
        simulation.database.decide = lambda: outcomes.pop() if outcomes else None
        await asyncio.sleep(30)
        yield "sent"

    async def ask(service: AsyncAgentService) -> str:
        await service.agents.create("ann", "sender", profile="sender")
        await service.agents.create("ann", "taker", profile="taker", idle_timeout=1.0)
        return await service.tasks.send("ann", "sender", "go")

    with simulated(brains={"sender": sender, "taker": script("thanks")}) as simulation:
        task = simulation.run(ask(simulation.service))
        simulation.advance(120)
        assert simulation.run(simulation.service.tasks.get("ann", task)).status == "done"
        nothing_twice(simulation)
