"""A power cut at every commit: a repeated turn remembers nothing twice, and nothing is lost."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.testing import Crash, Simulation
from tests.runtime.conftest import QUICK
from tests.runtime.handlers.mailing import all_settled

ROUNDS = 3


async def diarist(turn: Turn) -> AsyncIterator[str]:
    """Notes each task without a key, keeps a running line under one, and forgets what its task names."""
    seen = len(await turn.recall("noted", limit=100))
    await turn.remember(f"noted {turn.text}")
    await turn.mail("user:ann", "noted", turn.text)
    await asyncio.sleep(0.1)  # what it sends leaves before it ends
    await turn.remember(f"{seen + 1} so far", key="count")
    await turn.forget(f"todo {turn.text}")
    yield f"{seen + 1}"


async def live(service: AsyncAgentService) -> list[str]:
    """As a program that is started again would: what is there already is there already."""
    with contextlib.suppress(roost.Conflict):
        await service.agents.create("ann", "d", profile="diarist")
    for number in range(ROUNDS):
        await service.agents.remember("ann", "d", f"to do: {number}", key=f"todo {number}")
        task = await service.tasks.send("ann", "d", str(number), key=f"task {number}")
        await service.tasks.wait("ann", task, timeout=60)
        await service.agents.forget("ann", "d", f"todo {number}")
    await all_settled(service)
    return sorted(one.text for one in await service.agents.memories("ann", "d"))


EXPECTED = [f"{ROUNDS} so far", *(f"noted {number}" for number in range(ROUNDS))]


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_crash_at_any_commit_loses_no_memory_and_doubles_none(tmp_path: Path, side: str) -> None:
    crashes = 0
    for commit in range(1, 100):
        folder = tmp_path / str(commit)
        folder.mkdir()
        simulation = Simulation(folder, seed=commit)
        service = simulation.start({"diarist": diarist}, QUICK)
        assert simulation.database is not None
        setattr(simulation.database, f"crash_{side}", commit)
        try:
            found = simulation.run(live(service))
        except Crash:
            crashes += 1
            service = simulation.start({"diarist": diarist}, QUICK)
            found = simulation.run(live(service))
            simulation.crash()
            assert found == EXPECTED, commit
        else:
            simulation.crash()
            assert found == EXPECTED
            break
    assert crashes > 15, "the story has fewer commits than it should have"


def test_what_a_person_edits_is_not_undone_by_an_end_that_is_written_later(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path, seed=3)
    gate: list[str] = []

    async def keeper(turn: Turn) -> AsyncIterator[str]:
        turn.state["turn"] = turn.text
        while not gate:  # noqa: ASYNC110 — the story says when
            await asyncio.sleep(0.1)
        yield "kept"

    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="keeper")
        task = await service.tasks.send("ann", "d", "work")
        await asyncio.sleep(1.0)
        database = simulation.database
        assert database is not None
        start = database.commits
        database.failing = lambda commit: commit <= start + 1  # of the end of the turn
        gate.append("go on")
        await asyncio.sleep(0.15)
        database.failing = lambda commit: False
        assert (await service.tasks.get("ann", task)).status == "queued"
        await service.agents.set_state("ann", "d", {"edited": True})
        await service.tasks.wait("ann", task, timeout=60)

    simulation.run(story(simulation.start({"keeper": keeper}, QUICK)))
    simulation.crash()
    service = simulation.start({"keeper": keeper}, QUICK)
    assert simulation.run(service.agents.inspect("ann", "d")).turn_state == {"edited": True}
    simulation.crash()
