"""Phases of an activation: only moves of the table are made, each by exactly one caller, and nobody returns."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import roost
from roost import AsyncAgentService, Turn
from roost.runtime.agents.phase import PHASE_MOVES, LoopPhase, PhaseMachine
from roost.testing import Simulation

PHASES = st.sampled_from(LoopPhase)
Seen = dict[PhaseMachine, list[LoopPhase]]


@given(st.lists(st.tuples(PHASES, PHASES, st.booleans()), max_size=50))
def test_random_moves_lead_only_along_the_table(moves: list[tuple[LoopPhase, LoopPhase, bool]]) -> None:
    machine = PhaseMachine(nullcontext())
    for before, after, holds in moves:
        was = machine.phase
        if after not in PHASE_MOVES[before]:
            with pytest.raises(RuntimeError, match=f"cannot move from {before.value} to {after.value}"):
                machine.move(before, after)
            assert machine.phase is was
        else:
            moved = machine.move(before, after, lambda holds=holds: holds)  # type: ignore[misc]
            assert moved is (was is before and holds)
            assert machine.phase is (after if moved else was)


def test_every_phase_can_be_reached_and_only_retired_is_final() -> None:
    assert set().union(*PHASE_MOVES.values()) == set(LoopPhase)
    assert [phase for phase in LoopPhase if not PHASE_MOVES[phase]] == [LoopPhase.RETIRED]
    assert all(LoopPhase.RETIRED in PHASE_MOVES[phase] for phase in LoopPhase if phase is not LoopPhase.RETIRED)


@pytest.mark.parametrize("act", [lambda m: m.move(LoopPhase.QUEUED, LoopPhase.RUNNING), PhaseMachine.retire])
def test_exactly_one_of_many_threads_makes_a_move(act: Callable[[PhaseMachine], bool]) -> None:
    machines = [PhaseMachine(threading.Lock()) for _ in range(200)]
    won: list[PhaseMachine] = []
    together = threading.Barrier(4)

    def race() -> None:
        together.wait()
        won.extend(machine for machine in machines if act(machine))

    threads = [threading.Thread(target=race) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(map(id, won)) == sorted(map(id, machines))


# --- in the simulation ----------------------------------------------------------------------------


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Record the phases of all activations, in order."""
    seen: Seen = {}
    move = PhaseMachine.move

    def recorded(
        self: PhaseMachine, before: LoopPhase, after: LoopPhase, condition: Callable[[], bool] | None = None
    ) -> bool:
        moved = move(self, before, after, condition)
        if moved:
            seen.setdefault(self, [LoopPhase.QUEUED]).append(after)
        return moved

    monkeypatch.setattr(PhaseMachine, "move", recorded)
    return seen


async def works(turn: Turn) -> AsyncIterator[str]:
    what, _, seconds = turn.text.partition(" ")
    if what == "ask":
        await turn.ask("agent:a0", f"work {seconds}", deadline=1)
    await asyncio.sleep(float(seconds))
    if what == "sleep":
        await turn.sleep(0.1)
    yield "done"


async def act(service: AsyncAgentService, chance: random.Random) -> None:
    agent = f"a{chance.randrange(8)}"
    match chance.randrange(12):
        case 0:
            await service.agents.stop("ann", agent)
        case 1 | 2:
            await service.agents.start("ann", agent)
        case 3:
            await service.agents.pause("ann", agent)
        case 4:
            await service.agents.resume("ann", agent)
        case _:
            text = f"{chance.choice(('work', 'ask', 'sleep'))} {chance.choice((0, 0, 0.01, 0.3))}"
            await service.tasks.send("ann", agent, text, expires_in=5)
    await asyncio.sleep(chance.choice((0, 0, 0, 0.01, 0.2)))


@pytest.mark.parametrize("seed", range(8))
def test_activations_move_along_the_table_whatever_is_done_to_them(tmp_path: Path, seed: int, seen: Seen) -> None:
    """More agents than slots, so that loops are passed on while closings are written."""
    simulation = Simulation(tmp_path, seed)
    service = simulation.start({"works": works}, roost.Limits(awake_agents=2, drain=0.2, stop_patience=0.2))

    async def story() -> None:
        await service.agents.create_many("ann", [f"a{n}" for n in range(8)], profile="works", idle_timeout=0.05)
        chance = random.Random(seed)
        for _ in range(60):
            try:
                await act(service, chance)
            except roost.Conflict:
                continue

    simulation.run(story())
    simulation.run(simulation.service.close())
    assert len(seen) > 8
    for course in seen.values():
        assert all(after in PHASE_MOVES[before] for before, after in pairwise(course))
    reached = {phase for course in seen.values() for phase in course}
    assert reached == set(LoopPhase), f"never {set(LoopPhase) - reached}"
