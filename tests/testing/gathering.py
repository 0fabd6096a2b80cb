"""A gathering for simulations: agents and a person meet, come late, go and are sent away, whatever goes wrong."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from random import Random
from typing import Any, TypeVar

import roost
from roost import AsyncAgentService, Turn
from roost.testing import (
    ClusterFaults,
    ClusterSimulation,
    Faults,
    Simulation,
    aeventually,
    cluster_invariants,
    insist,
    meeting_views,
    meetings_agree,
    nothing_lost,
    nothing_twice,
)

QUICK = roost.Limits(drain=0.3, stop_patience=0.15)
CONFIG: dict[str, Any] = {"max_attempts": 60, "retry_delay": 0.05, "idle_timeout": 0.5, "profile": "member"}
WORDS = 2
"""Number of words that each agent says."""
LONG = 130.0
"""Seconds: longer than the longest pause before others are asked what one has missed."""


async def member(turn: Turn) -> AsyncIterator[str]:
    """Says two things, each once; counts them in its state, which is written with them."""
    if (spoken := turn.state.get("spoken", 0)) < WORDS and turn.meeting.may_speak:
        turn.state["spoken"] = spoken + 1
        yield f"{turn.agent_id} {spoken + 1}"


BRAINS: dict[str, roost.Brain] = {"member": member}
SIZES = (2, 2, 2, 3, 3, 4)
"""Numbers of agents, of which the seed chooses one."""
Simulated = TypeVar("Simulated", bound=Simulation)


def simulate(seed: int, faults: Faults | None = None, sizes: Sequence[int] = SIZES) -> Simulation:
    """Play a whole gathering in one process, and check all that must hold of it."""
    return meet(Simulation(seed=seed, faults=Faults.some(seed) if faults is None else faults), sizes)


def simulate_on_nodes(seed: int, faults: ClusterFaults | None = None) -> ClusterSimulation:
    """Play a whole gathering on three nodes; each call of a person goes to any of them."""
    simulation = ClusterSimulation(seed=seed, faults=ClusterFaults.some(seed) if faults is None else faults)
    return meet(simulation, SIZES, cluster_invariants)


def meet(
    simulation: Simulated, sizes: Sequence[int], invariants: Callable[[Simulated], object] = lambda _: None
) -> Simulated:
    """Play the gathering that the seed chooses; return the simulation, closed."""
    dice = Random(f"gathering {simulation.seed}")
    names = list("abcdefg"[: dice.choice(sizes)])
    floor = dice.choice(("free", "free", "round_robin", "raise_hand"))
    event = dice.choice(("", "late", "leave", "kick", "stop") if len(names) > 1 else ("", "late"))
    times = dice.randint(1, 2)

    async def story(s: AsyncAgentService) -> str:
        for name in (*names, "late") if event == "late" else names:
            with contextlib.suppress(roost.Conflict):
                await insist(lambda name=name: s.agents.create("ann", name, **CONFIG))  # type: ignore[misc]
        people = [f"agent:{name}" for name in names]
        meeting = await insist(
            lambda: s.meetings.call("ann", "gathering", required=people, floor=floor, deadline=50_000.0, key="call")
        )
        await aeventually(lambda: _is_running(s, meeting), within=10_000.0)
        for number in range(times):
            if floor == "raise_hand":
                await _once(lambda: s.meetings.raise_hand("ann", meeting))
            await _once(lambda number=number: s.meetings.say("ann", meeting, f"ann {number}", key=f"ann {number}"))  # type: ignore[misc]
            await asyncio.sleep(dice.uniform(0.0, 2.0))
            if event == "late":
                await _once(lambda: s.meetings.invite("ann", meeting, "agent:late"))
            elif event == "leave":
                await _once(lambda: s.meetings.leave("ann", meeting, by="agent:b"))
            elif event == "kick":
                await _once(lambda: s.meetings.kick("ann", meeting, "agent:b"))
            elif event == "stop":
                await insist(lambda: s.agents.stop("ann", "b"))
                await asyncio.sleep(dice.uniform(0.0, 2.0))
                await insist(lambda: s.agents.start("ann", "b"))
        return meeting

    with simulation:
        meeting = simulation.play(story, BRAINS, QUICK)
        _let_them_agree(simulation)
        nothing_lost(simulation)
        nothing_twice(simulation)
        invariants(simulation)
        there = names if event not in ("leave", "kick") else [name for name in names if name != "b"]
        _check_words(simulation, meeting, there, may_lose_the_floor=event == "stop" and floor != "free")
    return simulation


async def _is_running(s: AsyncAgentService, meeting: str) -> bool:
    return (await insist(lambda: s.meetings.view("ann", meeting))).phase == "running"


async def _once(act: Callable[[], Awaitable[object]]) -> None:
    """It may be refused: since it is done already, or since it is not one's turn."""
    with contextlib.suppress(roost.Forbidden):
        await insist(act)


def _let_them_agree(simulation: Simulation) -> None:
    """Nothing goes wrong any more: by and by all ask each other what they have missed."""
    for _ in range(12):
        try:
            meetings_agree(simulation)
            simulation.rest()
            meetings_agree(simulation)
            return
        except AssertionError:
            simulation.advance(LONG)
    meetings_agree(simulation)


def _check_words(simulation: Simulation, meeting: str, there: list[str], *, may_lose_the_floor: bool) -> None:
    """Check that what each agent has said, by its own count, is once and in order in every view.

    A speaker may lose the floor at the moment at which another participant comes back: every view shows that.
    """
    counts = dict(simulation.rows("SELECT agent_id, json_extract(memory, '$.spoken') FROM agents"))
    [view] = [view for who, view in meeting_views(simulation)[meeting].items() if who == "user:ann"]
    texts = [word.text for word in view.words]
    assert [text for text, count in Counter(texts).items() if count > 1] == []
    assert view.participants.keys() >= {f"agent:ann/{name}" for name in there}
    for name in there:
        spoken = [text for text in texts if text.startswith(f"{name} ")]
        wanted = [f"{name} {number}" for number in range(1, (counts[name] or 0) + 1)]
        void = [one for one in view.refused if one.kind == "said" and one.entry_id.author == f"agent:ann/{name}"]
        assert may_lose_the_floor or not void, void
        assert len(spoken) + len(void) == len(wanted), (spoken, void)
        assert spoken == [text for text in wanted if text in spoken], spoken
