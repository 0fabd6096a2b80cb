"""The duration of a tool call: without the wait for a person, and the same when the turn is repeated."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import roost
from roost import AsyncAgentService, Limits, ToolFailed, Turn
from roost.testing import Simulation
from tests.runtime.conftest import ended
from tests.runtime.journal.test_approvals import DAY, asked


@roost.tool(approval=True)
async def slow(seconds: float) -> str:
    await asyncio.sleep(seconds)
    if seconds == 3:
        raise ValueError("no")
    return "done"


async def times(turn: Turn) -> AsyncIterator[str]:
    found: list[float | None] = []
    for number, seconds in enumerate((2.0, 3.0, 4.0, 5.0)):
        with suppress(ToolFailed):
            await turn.call_tool("slow", {"seconds": seconds}, call_id=f"call {number}")
        spent = turn.tool_seconds(f"call {number}")
        found.append(None if spent is None else round(spent, 1))
    yield json.dumps([*found, turn.tool_seconds("another")])


def test_a_repeated_turn_gets_the_recorded_durations(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path, seed=3)
    service = simulation.start({"times": times}, Limits(), [slow])

    async def decide(service: AsyncAgentService, *decisions: str) -> None:
        for decision in decisions:
            [one] = await asked(service)
            await asyncio.sleep(10)  # a person takes their time
            await getattr(service.approvals, decision)("ann", one.approval_id)

    async def begin() -> str:
        talk = await service.create_talk_session("ann", profile="times")
        await service.add_message("ann", talk, "go")
        await decide(service, "approve", "approve", "decline")
        await asked(service)
        return talk

    talk = simulation.run(begin())
    simulation.crash()
    simulation.clock.advance(DAY)
    again = simulation.start({"times": times}, Limits(), [slow])
    simulation.run(decide(again, "approve"))
    said = simulation.run(ended(again, talk))[-1].content
    assert json.loads(said) == [2.0, 3.0, None, 5.0, None]
