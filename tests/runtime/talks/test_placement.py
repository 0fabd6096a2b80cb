"""Placement of talks on workers: those delivered at once share a worker, and a busy one gets no more."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from roost.testing import Simulation
from tests.runtime.conftest import slow

FROZEN = 0.5
"""Seconds for which the loops of the workers do not run."""


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_talks_delivered_at_once_share_a_worker_but_not_one_that_does_not_wake(tmp_path: Path, seed: int) -> None:
    simulation = Simulation(tmp_path, seed)
    service = simulation.start({"slow": slow})
    placement = service.roost.placement

    async def story() -> None:
        talks = [await service.create_talk_session("ann", profile="slow") for _ in range(5)]
        for worker in placement.workers:
            worker.loop.freeze(FROZEN)  # type: ignore[attr-defined]
        await asyncio.gather(*(service.add_message("ann", talk, "hello") for talk in talks[:4]))
        assert sorted(worker.load for worker in placement.workers) == [0, 4]
        await asyncio.sleep(FROZEN / 10)
        await service.add_message("ann", talks[4], "hello")
        assert sorted(worker.load for worker in placement.workers) == [1, 4]

    simulation.run(story())
    simulation.crash()
