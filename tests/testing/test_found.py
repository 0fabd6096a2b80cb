"""Defects that the simulation has found, and that were fixed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.testing import Faults, Simulation, all_invariants, insist


def test_an_agent_with_more_work_than_fits_continues_after_a_failed_claim(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Dispatcher, "share", 5)

    async def sender(turn: Turn) -> AsyncIterator[str]:
        await turn.send("agent:taker", "first")
        await asyncio.sleep(0.2)
        for number in range(20):
            await turn.send("agent:taker", f"{number}")
        yield "sent"

    async def taker(turn: Turn) -> AsyncIterator[str]:
        await asyncio.sleep(0.01)
        yield ""

    async def ask(service: AsyncAgentService) -> None:
        for name in ("sender", "taker"):
            try:
                await insist(lambda: service.agents.create("ann", name, profile=name, max_attempts=50))  # noqa: B023
            except roost.Conflict:
                continue
        await insist(lambda: service.tasks.send("ann", "sender", "go", key="go"))
        await asyncio.sleep(5)

    failed = 0
    for seed in range(25):
        with Simulation(seed=seed, faults=Faults(commit_failed=0.2)) as simulation:
            simulation.play(ask, {"sender": sender, "taker": taker})
            all_invariants(simulation)
            failed += simulation.happened["commit_failed"]
    assert failed > 25
