"""Many deadlines of meetings at one moment, and clocks that are set: each call is decided once, and none stays open."""

from __future__ import annotations

import asyncio

import pytest

import roost
from roost import AsyncAgentService
from roost.testing import Clock, Simulation, simulated
from tests.runtime.meetings.meeting_rooms import BRAINS

HOUR = 3_600.0


async def called(s: AsyncAgentService, count: int, deadline: float) -> list[str]:
    """Calls that nobody answers."""
    await s.agents.create("ann", "away", profile="silent", start=False, inbox_limit=100 * count)
    return [
        await s.meetings.call("ann", f"meeting {number}", required=["agent:away"], deadline=deadline)
        for number in range(count)
    ]


def decided(simulation: Simulation) -> list[tuple[str, int]]:
    """Of each meeting of ann's its phase, and how many entries have decided it."""
    return simulation.rows(
        "SELECT m.phase, (SELECT count(*) FROM meeting_log l WHERE l.participant = m.participant"
        ' AND l.meeting_id = m.meeting_id AND l.entry LIKE \'%"kind":"failed"%\')'
        " FROM meetings m WHERE m.participant = 'user:ann'"
    )


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=[pytest.mark.soak, pytest.mark.timeout(900)])])
def test_deadlines_that_pass_at_one_moment_are_all_kept(count: int) -> None:
    clock = Clock()
    limits = roost.Limits(meetings_at_once=count)
    with simulated(brains=BRAINS, seed=1, clock=clock, limits=limits) as simulation:
        meetings = simulation.run(called(simulation.service, count, 100.0))
        assert decided(simulation) == [("calling", 0)] * count
        clock.advance(200.0)  # as if the machine had stood still: all of them are due at once
        simulation.advance(2.0)
        assert decided(simulation) == [("failed", 1)] * count, "each is decided, once, and in time"
        assert len(set(meetings)) == count


@pytest.mark.parametrize("jump", [-HOUR, HOUR, -24 * HOUR, 365 * 24 * HOUR])
def test_a_clock_that_is_set_decides_no_call_twice_and_leaves_none_open(jump: float) -> None:
    clock = Clock()
    with simulated(brains=BRAINS, seed=1, clock=clock) as simulation:
        simulation.run(called(simulation.service, 3, 60.0))
        simulation.advance(10.0)
        before = clock.now()
        clock.jump(jump)
        assert abs(clock.now() - before - jump) < 1.0, "the clock was not set"
        simulation.advance(5.0)
        is_past = jump > 60.0
        assert decided(simulation) == [("failed", 1) if is_past else ("calling", 0)] * 3
        if not is_past:  # the deadline is a time on the clock on the wall, which is set right again
            clock.jump(-jump)
            simulation.advance(60.0)
        assert decided(simulation) == [("failed", 1)] * 3

        async def more(s: AsyncAgentService) -> None:
            meeting = await s.meetings.call("ann", "later", required=["agent:away"], deadline=5.0)
            await asyncio.sleep(6.0)
            assert (await s.meetings.view("ann", meeting)).phase == "failed"

        simulation.run(more(simulation.service))
