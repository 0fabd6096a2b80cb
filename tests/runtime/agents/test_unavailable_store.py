"""Closings that cannot be written at once are written later."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from roost import AsyncAgentService, Turn
from roost.errors import Unavailable
from roost.ports import Tx
from roost.runtime.agents.closings import Closings
from roost.stores.sql import settlement
from tests.runtime.conftest import World


async def does(turn: Turn) -> AsyncIterator[str]:
    yield f"did {turn.text}"


@pytest.mark.parametrize("has_timer", [True, False])
def test_closings_are_written_when_the_store_is_back(
    world: World, monkeypatch: pytest.MonkeyPatch, has_timer: bool
) -> None:
    """The timer of the retry is on the loop of the agent, which may end before it fires."""
    refused: list[int] = []
    real = settlement.settle

    def settle(tx: Tx, closings: tuple[Any, ...], *more: Any) -> Any:
        if closings and len(refused) < 3:
            refused.append(len(closings))
            raise Unavailable("the disk is full")
        return real(tx, closings, *more)

    monkeypatch.setattr(settlement, "settle", settle)
    if not has_timer:
        monkeypatch.setattr(Closings, "unsettled", lambda self, error: None)

    async def scenario(service: AsyncAgentService) -> list[str | None]:
        for name in "abc":
            await service.agents.create("ann", name, profile="does")
        tasks = [await service.tasks.send("ann", name, str(number)) for number in range(3) for name in "abc"]
        return [(await service.tasks.wait("ann", task, timeout=30)).result for task in tasks]

    assert world({"does": does}, scenario) == [f"did {number}" for number in range(3) for _ in "abc"]
    assert len(refused) == 3
