"""The kit: time in which nothing happens costs nothing, and what happens in it happens at its time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta

import pytest

import roost
from roost import AsyncAgentService, PlainTurn, Turn
from roost.testing import Clock, Faults, script, simulated
from roost.testing.fixtures import MakeRoost, MakeSimulation, make_roost, make_simulation

__all__ = ["make_roost", "make_simulation"]

DAY = 86_400.0
MONTH = 30 * DAY


@pytest.mark.parametrize("faults", [Faults(), Faults(bell_lost=0.2, handover_lost=0.2)], ids=["well", "faulty"])
def test_a_month_of_nothing_takes_less_than_a_second(faults: Faults) -> None:
    clock = Clock()
    with simulated(script("done"), clock=clock, faults=faults) as simulation:
        simulation.run(simulation.service.agents.create("ann", "owl"))
        began = time.process_time()
        simulation.advance(MONTH)
        spent = time.process_time() - began
    assert clock.monotonic() >= MONTH
    assert spent < 1.0


def test_a_story_may_sleep_for_a_season() -> None:
    clock = Clock()
    with simulated(script("done"), clock=clock) as simulation:
        simulation.run(asyncio.sleep(3 * MONTH))
    assert clock.monotonic() == pytest.approx(3 * MONTH, abs=1.0)


async def notes(turn: Turn) -> AsyncIterator[str]:
    turn.state["times"] = [*turn.state.get("times", []), turn.now.isoformat()]
    yield turn.now.isoformat()


def test_what_is_due_comes_at_its_time_and_brains_see_that_time() -> None:
    clock = Clock()
    with simulated(notes, clock=clock) as simulation:
        service, start = simulation.service, clock.time

        async def begin() -> None:
            await service.agents.create("ann", "owl")
            await service.schedules.create("ann", "owl", "look", cron="0 6 * * *")
            await service.agents.create("ann", "bat")
            await service.agents.sleep("ann", "bat", 3 * DAY + 5)

        simulation.run(begin())
        simulation.advance(10 * DAY)
        seen = [datetime.fromisoformat(one) for one in _times(simulation.run(service.agents.inspect("ann", "owl")))]
        woken = simulation.run(service.agents.history("ann", "bat"))[0]
        assert len(seen) == 10
        assert all(one.tzinfo is not None and (one.hour, one.minute, one.second) == (6, 0, 0) for one in seen)
        assert woken.cause == "time"
        assert timedelta() <= woken.at - start - timedelta(days=3, seconds=5) < timedelta(seconds=0.1)


def _times(seen: roost.Inspection) -> list[str]:
    return list(seen.turn_state["times"])


def test_a_clock_that_is_set_is_noticed_while_time_is_skipped() -> None:
    clock = Clock()
    with simulated(script("done"), clock=clock) as simulation:
        service = simulation.service
        simulation.run(service.agents.create("ann", "owl"))
        simulation.run(service.agents.sleep("ann", "owl", 3_600))
        simulation.advance(600)
        clock.jump(3_600)
        simulation.advance(1.5)
        assert simulation.run(service.agents.get("ann", "owl")).state == "idle"


@pytest.mark.parametrize("seed", range(5))
def test_what_was_lost_is_found_as_soon_as_before(seed: int) -> None:
    """A bell that is lost after a long silence is made up for by the slow look, within seconds."""
    with simulated(script("done"), seed=seed, faults=Faults(bell_lost=0.3, handover_lost=0.3)) as simulation:
        service = simulation.service
        simulation.run(service.agents.create("ann", "owl"))
        simulation.advance(DAY)
        task = simulation.run(service.tasks.send("ann", "owl", "work", key="k"))
        simulation.advance(120)
        assert simulation.run(service.tasks.get("ann", task)).status == "done"


def test_now_is_the_time_of_the_host(make_roost: MakeRoost) -> None:
    def plain(turn: PlainTurn) -> Iterator[str]:
        yield turn.now.isoformat()

    service = make_roost(brains={"notes": notes, "plain": plain})
    for profile in ("notes", "plain"):
        service.agents.create("ann", profile, profile=profile)
        before = datetime.now(UTC)
        task = service.tasks.wait("ann", service.tasks.send("ann", profile, "go"), timeout=20)
        assert before - timedelta(seconds=0.1) <= datetime.fromisoformat(str(task.result)) <= datetime.now(UTC)


def test_a_replay_sees_the_time_of_the_run(make_roost: MakeRoost) -> None:
    service = make_roost(notes)
    service.agents.create("ann", "d")
    task = service.tasks.wait("ann", service.tasks.send("ann", "d", "go"), timeout=20)
    [run] = service.runs.list("ann")
    assert datetime.fromisoformat(str(task.result)) >= run.started
    assert service.runs.replay("ann", run.run_id).text == run.started.isoformat()


@roost.tool
async def double(number: int) -> str:
    """Double a number."""
    return str(2 * number)


async def doubles(turn: Turn) -> AsyncIterator[str]:
    yield await turn.call_tool("double", {"number": 21})


def test_tools_are_given_to_both_kinds_of_roost(make_roost: MakeRoost, make_simulation: MakeSimulation) -> None:
    service = make_roost(doubles, tools=[double])
    service.agents.create("ann", "d")
    assert service.tasks.wait("ann", service.tasks.send("ann", "d", "go"), timeout=20).result == "42"
    simulation = make_simulation(doubles, tools=[double])

    async def story(service: AsyncAgentService) -> str | None:
        await service.agents.create("ann", "d")
        return (await service.tasks.wait("ann", await service.tasks.send("ann", "d", "go"))).result

    assert simulation.run(story(simulation.service)) == "42"
