"""A whole roost from one seed: with whatever faults, all holds; and it repeats exactly."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from roost import AsyncAgentService, Turn
from roost.testing import (
    Clock,
    Crash,
    End,
    Faults,
    Simulation,
    Stuck,
    all_ended,
    all_invariants,
    fates,
    nothing_lost,
    script,
    simulated,
)
from tests.conftest import ENVIRONMENT
from tests.testing.team import BRAINS, QUICK, simulate, story

ROOT = Path(__file__).parents[2]
EACH = 25
PARTS = [0, *(pytest.param(first, marks=pytest.mark.soak) for first in range(EACH, 40 * EACH, EACH))]
"""The first seed of each part; `make soak` runs a thousand."""


@pytest.mark.parametrize("first", PARTS)
def test_a_team_bears_whatever_goes_wrong(first: int) -> None:
    happened: Counter[str] = Counter()
    for seed in range(first, first + EACH):
        happened += simulate(seed).happened
    assert happened.keys() == Faults().chances.keys() - {"post_lost"}, "not all of it has happened"  # nobody meets


def test_the_same_seed_gives_the_same_run_in_every_process() -> None:
    program = (
        "import logging; logging.disable(50)\n"
        "from roost.testing import Faults, Simulation\n"
        "from tests.testing.team import BRAINS, QUICK, story\n"
        "for seed in (1, 2, 3):\n"
        "    with Simulation(seed=seed, faults=Faults.all()) as simulation:\n"
        "        simulation.play(story, BRAINS, QUICK)\n"
        "        print(simulation.digest(), len(simulation.turns), sorted(simulation.happened.items()))\n"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**ENVIRONMENT, "PYTHONHASHSEED": seed},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1]
    assert len(set(runs[0].splitlines())) == 3


def test_a_failure_says_under_pytest_how_to_repeat_it(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "from roost.testing import Faults, script, simulated\n"
        "def test_it():\n"
        "    with simulated(script('hello'), seed=7, faults=Faults(bell_lost=0.5)):\n"
        "        assert 1 == 2\n"
    )
    asked = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    told = subprocess.run(asked, env=ENVIRONMENT, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert "Repeat it with Simulation(seed=7, faults=Faults(bell_lost=0.5))" in told


def test_a_crash_runs_no_finally_and_what_was_committed_is_done_after_it() -> None:
    ended: list[str] = []

    async def careful(turn: Turn) -> AsyncIterator[str]:
        try:
            await asyncio.sleep(5)
            yield "done"
        finally:
            ended.append(f"try {turn.attempt}")

    async def ask(service: AsyncAgentService) -> str:
        await service.agents.create("ann", "d")
        return await service.tasks.send("ann", "d", "work")

    with simulated(careful) as simulation:
        task = simulation.run(ask(simulation.service))
        simulation.advance(1.0)
        simulation.crash()
        service = simulation.start({"brain": careful})
        assert simulation.run(service.tasks.wait("ann", task)).result == "done"
        assert ended == ["try 1"], "the first try was cut off without a word, and a crash counts none"
        all_invariants(simulation)


def test_a_crash_comes_at_any_await() -> None:
    """Each of a thousand moments is one at which the power may fail."""
    places: set[int] = set()
    for seed in range(30):
        with Simulation(seed=seed, faults=Faults(crash=0.01)) as simulation:
            service = simulation.start(BRAINS, QUICK)
            with pytest.raises(Crash):
                simulation.run(story(service))
            places.add(simulation._steps[0][0])
    assert len(places) > 20


def test_time_is_moved_by_hand() -> None:
    async def work(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d")
        await service.agents.sleep("ann", "d", 3600)

    clock = Clock()
    with simulated(script("done"), clock=clock) as simulation:
        simulation.run(work(simulation.service))
        clock.jump(-1800)  # people's clocks are set back by half an hour
        simulation.advance(3700)
        assert simulation.run(simulation.service.agents.get("ann", "d")).state == "sleeping"
        clock.advance(1800)
        simulation.advance(1)
        assert simulation.run(simulation.service.agents.get("ann", "d")).state == "idle"


def test_a_simulation_that_does_not_settle_names_the_reason() -> None:
    async def ask(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", max_attempts=1_000, retry_delay=3600.0)
        await service.tasks.send("ann", "d", "work")

    with simulated(script(RuntimeError("no"))) as simulation:
        simulation.run(ask(simulation.service))
        simulation.advance(1)
        with pytest.raises(Stuck, match=r"1 envelopes are pending after 5 s.*'ann/d'") as stuck:
            simulation.rest(within=5)
        assert stuck.value.__notes__ == ["Repeat it with Simulation(seed=0, faults=Faults())"]
        assert [fate.end for fate in fates(simulation)] == [End.WAITING]


def test_what_is_gone_and_was_never_done_is_lost() -> None:
    async def ask(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", start=False)
        await service.tasks.send("ann", "d", "work")
        await service.roost.context.store.write(lambda tx: tx.write("DELETE FROM inbox"))

    with simulated(script("done")) as simulation:
        simulation.run(ask(simulation.service))
        with pytest.raises(AssertionError, match=r"gone without being handled \(1\):\n.*'work'"):
            nothing_lost(simulation)


def test_ends_are_distinguished() -> None:
    async def ask(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", max_attempts=1)
        await service.agents.create("ann", "late", start=False)
        for what in ("good", "bad"):
            await service.tasks.wait("ann", await service.tasks.send("ann", "d", what))
        await service.tasks.cancel("ann", await service.tasks.send("ann", "late", "never"))
        await service.tasks.send("ann", "late", "wait")

    with simulated(script("done", matching={"bad": RuntimeError("no")})) as simulation:
        simulation.run(ask(simulation.service))
        ends = {fate.body: fate.end for fate in fates(simulation)}
        assert ends == {"good": End.DONE, "bad": End.DEAD, "never": End.CANCELLED, "wait": End.WAITING}
        all_ended(simulation)
        with pytest.raises(AssertionError, match="did not end as done"):
            all_ended(simulation, End.DONE)


def test_faults_are_chances_and_show_what_is_on() -> None:
    with pytest.raises(ValueError, match="crash must be a chance"):
        Faults(crash=2)
    assert repr(Faults()) == "Faults()"
    assert repr(replace(Faults.some(3), crash=0.5)).startswith("Faults(")
    assert eval(repr(Faults.all()), {"Faults": Faults}) == Faults.all()
    assert len({Faults.some(seed) for seed in range(50)}) > 40
