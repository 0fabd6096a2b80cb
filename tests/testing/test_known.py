"""What the simulation has found and is not mended yet. Whoever mends it removes the mark, and the line in SPARED."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.testing import Faults, Simulation, nothing_twice, script, simulated
from tests.testing.team import BRAINS, QUICK, SPARED, check, story

SEEDS = 60


def known(what: str, why: str, **faults: float) -> pytest.param:  # type: ignore[valid-type]
    return pytest.param(what, Faults(**faults), id=what, marks=pytest.mark.xfail(raises=AssertionError, reason=why))


@pytest.mark.parametrize(
    ("what", "faults"),
    [
        known("memory", "a settle that failed is written after later ones, with an older memory", commit_failed=0.1),
        known("sleep", "a timer that was fired is gone, though nobody may have looked at the sleeper", bell_lost=0.2),
        known(
            "twice", "a try of what is over may still send on the way", handover_doubled=0.2, handover_delayed=0.2
        ),
        known("order", "what was posted by a commit of unknown outcome is overtaken", commit_unknown=0.1),
    ],
)  # fmt: skip
def test_a_team_bears_this_too(what: str, faults: Faults) -> None:
    spared = {name: under for name, under in SPARED.items() if name != what}
    for seed in range(SEEDS):
        with Simulation(seed=seed, faults=faults) as simulation:
            simulation.play(story, BRAINS, QUICK)
            check(simulation, spared)


@pytest.mark.xfail(raises=AssertionError, reason="after the first of two times nobody waits for the second")
@pytest.mark.parametrize("together", [True, False], ids=["both times", "one with an event, or the other"])
def test_a_sleeper_that_waits_for_several_times_wakes(together: bool) -> None:
    with simulated(script("done")) as simulation:
        first, second = (roost.at(simulation.clock.time + timedelta(seconds=n)) for n in (5, 10))
        condition = (
            roost.all_of(first, second) if together else roost.any_of(roost.all_of(first, roost.event("x")), second)
        )  # fmt: skip

        async def sleep(service: AsyncAgentService) -> None:
            await service.agents.create("ann", "d")
            await service.agents.sleep("ann", "d", wake_on=condition)

        simulation.run(sleep(simulation.service))
        simulation.advance(60)
        assert simulation.run(simulation.service.agents.get("ann", "d")).state == "idle"


@pytest.mark.xfail(raises=AssertionError, reason="what has left on the way is sent again if that is not known")
@pytest.mark.parametrize("what", ["mail", "message"])
def test_what_a_turn_sends_leaves_once_though_nobody_knows_whether_it_has(what: str) -> None:
    async def sender(turn: Turn) -> AsyncIterator[str]:
        if what == "mail":
            await turn.mail("user:ann", "hello", "there")
        else:
            await turn.send("agent:taker", "hello")
        outcomes = ["done"]  # of the commit that posts it, while the turn goes on
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
