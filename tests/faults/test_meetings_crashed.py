"""A crash at every commit of a meeting in which words come too late: what a run has said is refused, once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.testing import Crash, Simulation, aeventually
from tests.conftest import QUICK

LATE = "too late"
MOST = 200
"""Commits that the story has at most."""


class Slow:
    """Says one thing too late; keeps the refusals that it gets."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def brain(self, turn: Turn) -> AsyncIterator[str]:
        self.told += [one.text for one in turn.meeting.refused]
        if turn.meeting.why == "floor" and not turn.state.get("spoke"):
            turn.state["spoke"] = True
            await asyncio.sleep(5)
            yield LATE


async def story(service: AsyncAgentService) -> str:
    """As a program that may be started again: ann passes the agent over while it speaks."""
    with contextlib.suppress(roost.Conflict):
        await service.agents.create("ann", "d", profile="slow", max_attempts=50, retry_delay=0.1)
    meeting = await service.meetings.call(
        "ann", "standup", required=["agent:d"], floor="round_robin", turn_timeout=0, key="call"
    )
    await aeventually(lambda: is_running(service, meeting), within=600)
    await service.meetings.say("ann", meeting, "begin", key="begin")
    await aeventually(lambda: has_heard(service, meeting), within=600)
    await asyncio.sleep(1)
    with contextlib.suppress(roost.Forbidden):  # it was done before the crash
        await service.meetings.pass_turn("ann", meeting, "agent:d")
    await asyncio.sleep(60)
    return meeting


async def is_running(service: AsyncAgentService, meeting: str) -> bool:
    return (await service.meetings.view("ann", meeting)).phase == "running"


async def has_heard(service: AsyncAgentService, meeting: str) -> bool:
    return (await service.meetings.view("ann", meeting, seen_by="agent:d")).said == 1


async def check(service: AsyncAgentService, meeting: str, slow: Slow) -> int:
    """Return the number of runs that ended with late words."""
    views = [await service.meetings.view("ann", meeting, seen_by=who) for who in ("user:ann", "agent:d")]
    assert views[0].words == views[1].words
    assert views[0].refused == views[1].refused
    refused = [(one.kind, one.text) for one in views[0].refused]
    assert [word.text for word in views[0].words] == ["begin"], "it was said after the floor had moved"
    runs = [await service.runs.get("ann", run.run_id) for run in await service.runs.list("ann", agent="d")]
    spoken = [run for run in runs if run.run.outcome == "done" and run.text == LATE]
    assert refused == [("said", LATE)] * len(spoken), "what a run said is refused once, and nothing else is"
    assert [[one.text for one in run.refused] for run in spoken] == [[LATE]] * len(spoken)
    assert set(slow.told) == {LATE} if spoken else not slow.told, "its author sees it"
    return len(spoken)


def crash_and_return(simulation: Simulation, side: str, commit: int) -> tuple[bool, int]:
    """Return whether the power was cut, and the number of runs that ended with late words."""
    slow, crashed = Slow(), False
    service = simulation.start({"slow": slow.brain}, QUICK)
    setattr(simulation.database, side, commit)
    try:
        meeting = simulation.run(story(service))
    except Crash:
        crashed = True
        service = simulation.start({"slow": slow.brain}, QUICK)
        meeting = simulation.run(story(service))
    spoken = simulation.run(check(service, meeting, slow))
    simulation.crash()
    return crashed, spoken


@pytest.mark.parametrize("side", ["crash_before", "crash_after"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 20))])
def test_late_words_are_refused_once_whenever_the_power_is_cut(tmp_path: Path, side: str, seed: int) -> None:
    late = 0
    for commit in range(1, MOST):
        folder = tmp_path / str(commit)
        folder.mkdir()
        crashed, spoken = crash_and_return(Simulation(folder, seed * MOST + commit), side, commit)
        late += spoken
        if not crashed:
            break
    assert commit > 10, "the story has fewer commits than it should have"
    assert late >= 3, "the words were hardly ever late"
