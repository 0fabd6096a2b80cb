"""A small team on three simulated nodes: tasks, asks, mail, sleep, schedules and talks, all of them counted."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from typing import Any

import roost
from roost import AsyncAgentService, Turn
from roost.testing import (
    ClusterFaults,
    ClusterSimulation,
    End,
    aeventually,
    all_ended,
    cluster_invariants,
    insist,
)

QUICK = roost.Limits(drain=0.3, stop_patience=0.15, talk_workers=1)
CONFIG: dict[str, Any] = {"max_attempts": 60, "retry_delay": 0.05, "idle_timeout": 0.5}
ORDERS = 3
SAID = ("one", "two")
ATTEMPTS = 3
"""Answers of a talk that a crash may interrupt before the next one fails."""


def _count(turn: Turn) -> None:
    done = f"{turn.kind} {turn.text}"
    turn.state[done] = turn.state.get(done, 0) + 1


async def boss(turn: Turn) -> AsyncIterator[str]:
    _count(turn)
    number = await turn.ask("agent:clerk", f"number for {turn.text}?", deadline=300.0)
    await turn.send("agent:worker", f"{turn.text} {number}")
    yield number


async def clerk(turn: Turn) -> AsyncIterator[str]:
    _count(turn)
    yield f"no. {turn.text}"


async def worker(turn: Turn) -> AsyncIterator[str]:
    _count(turn)
    await asyncio.sleep(0.4)
    await turn.mail("user:ann", f"finished {turn.text}", "all of it")
    await asyncio.sleep(0.2)
    yield "ok"


async def owl(turn: Turn) -> AsyncIterator[str]:
    _count(turn)
    await turn.sleep(1.5)
    yield "hu"


async def talker(turn: Turn) -> AsyncIterator[str]:
    for word in ("you", "said", turn.text):
        yield f"{word} "
        await asyncio.sleep(0.15)


AGENTS: dict[str, roost.Brain] = {"boss": boss, "clerk": clerk, "worker": worker, "owl": owl}
BRAINS: dict[str, roost.Brain] = {**AGENTS, "talker": talker}


async def story(service: AsyncAgentService) -> list[str]:
    """Create a team, give it work on any node, and wait for all of it; return the ids of the tasks."""
    for name in AGENTS:
        with contextlib.suppress(roost.Conflict):
            await insist(partial(service.agents.create, "ann", name, profile=name, **CONFIG))
    with contextlib.suppress(roost.Conflict):
        every = timedelta(seconds=2)
        await insist(
            partial(service.schedules.create, "ann", "clerk", "tick", every=every, name="ticks", overlap="queue_all")
        )
    talk = await insist(partial(service.create_talk_session, "ann", profile="talker"))
    tasks = [await _send(service, "boss", f"order {n}") for n in range(ORDERS)]
    for text in SAID:
        await insist(partial(service.add_message, "ann", talk, text, key=text))
        await asyncio.sleep(0.3)
    tasks += [await _send(service, "owl", f"hoot {n}") for n in range(2)]
    for task in tasks:
        await aeventually(partial(_is_over, service, task), within=300)
    await aeventually(partial(_is_finished, service), within=300)
    return tasks


async def _send(service: AsyncAgentService, to: str, what: str) -> str:
    return await insist(partial(service.tasks.send, "ann", to, what, key=what))


async def _is_over(service: AsyncAgentService, task: str) -> bool:
    return (await insist(partial(service.tasks.get, "ann", task))).is_over


async def _is_finished(service: AsyncAgentService) -> bool:
    mail = await insist(partial(service.mail.inbox, "ann", limit=100))
    return len([one for one in mail if one.subject.startswith("finished")]) >= ORDERS


def simulate(seed: int, faults: ClusterFaults | None = None) -> ClusterSimulation:
    """Play the story and check that all holds; return the simulation, closed."""
    chosen = ClusterFaults.some(seed) if faults is None else faults
    with ClusterSimulation(seed=seed, faults=chosen) as simulation:
        tasks = simulation.play(story, BRAINS, QUICK)
        check(simulation, tasks)
    return simulation


def check(simulation: ClusterSimulation, tasks: list[str]) -> None:
    """Check that nothing is lost or doubled, and that each agent remembers all that was done, once."""
    all_ended(simulation, End.DONE)
    cluster_invariants(simulation)
    status = dict(simulation.rows("SELECT task_id, status FROM tasks"))
    assert {status[task] for task in tasks} == {"done"}
    all_remembered(simulation)
    all_answered(simulation)


def all_remembered(simulation: ClusterSimulation) -> None:
    orders = [f"order {n}" for n in range(ORDERS)]
    ticks = simulation.rows("SELECT task_id FROM tasks WHERE schedule_id IS NOT NULL AND status = 'done'")
    expected = {
        "boss": [f"task {order}" for order in orders],
        "clerk": [f"task number for {order}?" for order in orders] + ["task tick"] * len(ticks),
        "worker": [f"task {order} no. number for {order}?" for order in orders],
        "owl": ["task hoot 0", "task hoot 1"],
    }
    for name, state in simulation.rows("SELECT agent_id, memory FROM agents"):
        remembered = sorted(Counter(json.loads(state or "{}")).elements())
        assert remembered == sorted(expected[name]), f"{name} remembers {remembered}"


def all_answered(simulation: ClusterSimulation) -> None:
    """Check that each message of the talk is there once, and that the last one has an answer."""
    rows = simulation.rows("SELECT sender, content, status FROM messages ORDER BY talk_id, seq")
    assert [content for sender, content, _ in rows if sender == "user"] == [*SAID], rows
    answers = [(content, status) for sender, content, status in rows if sender != "user"]
    content, status = answers[-1]
    if status == "failed":  # it was running while one node after another crashed
        assert [status for _, status in answers].count("interrupted") >= ATTEMPTS, rows
    else:
        assert (content.split()[-1], status) == (SAID[-1], "complete"), rows
