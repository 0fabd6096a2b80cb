"""A4, A10: whatever becomes of an agent while it works, what it was given is done, or was tried as often as it may."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import roost
from roost import AsyncAgentService, Turn
from roost.hosts.simulated import Crash
from roost.testing import Simulation

LIMITS = roost.Limits(drain=0.3, stop_patience=0.15)
MOVES = ("restart", "restart", "stop", "start", "pause", "resume", "sleep", "wake", "crash")
Step = tuple[str, float] | str


def sending() -> st.SearchStrategy[Step]:
    """A task, and how long it takes."""
    return st.tuples(st.just("send"), st.sampled_from([0.0, 0.01, 0.3]))


STEPS = st.lists(
    st.one_of(sending(), sending(), st.sampled_from(MOVES), st.tuples(st.just("pass"), st.sampled_from([0.005, 0.2]))),
    min_size=8,
    max_size=25,
)


@given(STEPS, st.sampled_from([1, 1, 2, 3]), st.integers(1, 3), st.integers(0, 2**32))
def test_what_fails_was_tried_as_often_as_it_may_be(steps: list[Step], attempts: int, at_once: int, seed: int) -> None:
    begun: Counter[str] = Counter()
    ended: Counter[str] = Counter()

    async def works(turn: Turn) -> AsyncIterator[str]:
        begun[turn.text] += 1
        await asyncio.sleep(float(turn.text.split()[1]))
        ended[turn.text] += 1
        yield "done"

    with tempfile.TemporaryDirectory(prefix="roost-tries-") as folder:
        simulation = Simulation(Path(folder), seed)
        simulation.start({"works": works}, LIMITS)
        simulation.run(
            simulation.service.agents.create(
                "ann", "d", profile="works", max_attempts=attempts, max_concurrent_tasks=at_once, retry_delay=0.05
            )
        )
        sent: dict[str, str] = {}
        crashes = 0
        for step in steps:
            if step == "crash":
                simulation.crash()
                simulation.start({"works": works}, LIMITS)
                crashes += 1
            elif isinstance(step, str):
                simulation.run(moved(simulation.service, step))
            elif step[0] == "pass":
                simulation.advance(step[1])
            else:
                prompt = f"{len(sent)} {step[1]}"
                sent[prompt] = simulation.run(simulation.service.tasks.send("ann", "d", prompt))
        for step in ("start", "resume", "wake"):
            simulation.run(moved(simulation.service, step))
        for prompt, task_id in sent.items():
            task = simulation.run(simulation.service.tasks.wait("ann", task_id, 60.0))
            assert task.is_over, task
            if task.status == "done":
                assert ended[prompt] >= 1
            else:  # nothing here fails by itself: it was a suspect, was quarantined, and each death there counts
                assert crashes >= attempts + 2, (task, begun[prompt], crashes)


async def moved(service: AsyncAgentService, step: str) -> None:
    if step != "sleep":
        await getattr(service.agents, step)("ann", "d")
    elif (await service.agents.get("ann", "d")).state != "stopped":
        await service.agents.sleep("ann", "d", 0.1)


@given(
    st.lists(st.tuples(st.sampled_from(["bad", "good"]), st.sampled_from([0.0, 0.1, 0.4])), min_size=1, max_size=8),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(0, 8),
    st.integers(0, 2**32),
)
def test_a_poison_task_is_given_up_and_no_neighbour_fails(
    healthy: list[tuple[str, float]], attempts: int, at_once: int, place: int, seed: int
) -> None:
    """It costs as many crashes as it has attempts, and two before its quarantine, whatever runs beside it."""
    with tempfile.TemporaryDirectory(prefix="roost-poison-") as folder:
        simulation = Simulation(Path(folder), seed)
        deaths = 0

        async def works(turn: Turn) -> AsyncIterator[str]:
            await asyncio.sleep(0.2 if turn.text == "poison" else float(turn.text.split()[1]))
            if turn.text == "poison" and simulation.host is not None:
                simulation.host.tick = die
                await asyncio.sleep(1)
            yield "done"

        async def story(service: AsyncAgentService) -> list[roost.Task]:
            for name in ("bad", "good"):
                if name not in {agent.agent_id for agent in await service.agents.list("ann")}:
                    await service.agents.create(
                        "ann", name, profile="works", max_attempts=attempts, max_concurrent_tasks=at_once, start=False
                    )
            sent = [(agent, f"{number} {seconds}") for number, (agent, seconds) in enumerate(healthy)]
            sent.insert(place, ("bad", "poison"))
            tasks = [await service.tasks.send("ann", agent, text, key=text) for agent, text in sent]
            for name in ("bad", "good"):
                await service.agents.start("ann", name)
            return [await service.tasks.wait("ann", task, 600.0) for task in tasks]

        ended: list[roost.Task] = []
        while not ended:
            service = simulation.start({"works": works}, LIMITS)
            try:
                ended = simulation.run(story(service))
            except Crash:
                deaths += 1
                assert deaths <= attempts + 2
        simulation.crash()
        assert deaths == attempts + 2
        assert {(task.prompt == "poison", str(task.status), task.attempts) for task in ended} == {
            (True, "failed", attempts),
            (False, "done", 1),
        }


def die() -> None:
    raise Crash
