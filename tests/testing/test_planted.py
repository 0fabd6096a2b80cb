"""Bugs are planted, and the simulation finds them: it would notice if one of these guards were gone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from roost.core.runs import Closing, Settled
from roost.ports import Tx
from roost.runtime.agents.closings import Closings
from roost.runtime.supervisor import Supervisor
from roost.stores.sql import settlement
from roost.testing import Faults
from tests.testing.team import simulate

SEEDS = 200


def found(faults: Callable[[int], Faults] = Faults.some) -> tuple[int, BaseException] | None:
    """The first seed that shows that something is wrong, and what it says."""
    for seed in range(SEEDS):
        try:
            simulate(seed, faults(seed))
        except (AssertionError, KeyError) as error:
            return seed, error
    return None


def test_the_end_of_a_try_that_is_not_written_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = settlement.settle

    def forgetful(tx: Tx, closings: tuple[Closing, ...], *args: Any) -> tuple[Settled, ...]:
        """Of each tenth one it is said that it was written."""
        kept = tuple(c for c in closings if not c.run_id.endswith("0"))
        settled = dict(zip((id(c) for c in kept), real(tx, kept, *args), strict=True))
        return tuple(settled.get(id(c), Settled(True)) for c in closings)

    monkeypatch.setattr(settlement, "settle", forgetful)
    assert found() is not None


def test_an_end_that_is_written_and_not_acknowledged_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Closings.settled

    def deaf(self: Closings, results: list[tuple[Closing, Settled]]) -> None:
        if not any(closing.run_id.endswith("0") for closing, _ in results):
            real(self, results)

    monkeypatch.setattr(Closings, "settled", deaf)
    assert found() is not None


def test_an_epoch_that_is_not_checked_when_a_try_settles_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = settlement.settle

    def trusting(tx: Tx, closings: tuple[Closing, ...], *args: Any) -> tuple[Settled, ...]:
        """Accept a settle by any owner."""
        epochs: dict[str, int] = {row[0]: row[1] for row in tx.read("SELECT address, epoch FROM agents")}
        return real(tx, tuple(replace(c, epoch=epochs.get(c.envelope.address, -1)) for c in closings), *args)

    monkeypatch.setattr(settlement, "settle", trusting)
    assert found(lambda _: Faults(commit_failed=0.2)) is not None


def test_a_slow_look_that_is_forgotten_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def blind(self: Supervisor) -> None:
        """Nobody looks for what was not handed over."""

    monkeypatch.setattr(Supervisor, "_sweep_agents", blind)
    assert found() is not None
