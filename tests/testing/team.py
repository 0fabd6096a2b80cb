"""A small team for simulations: tasks, messages, asks, mail, events, sleep and schedules, all of them counted."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import roost
from roost import AsyncAgentService, Turn
from roost.testing import (
    End,
    Faults,
    Simulation,
    aeventually,
    all_ended,
    in_order,
    insist,
    nothing_lost,
    nothing_twice,
)

QUICK = roost.Limits(drain=0.3, stop_patience=0.15)
CONFIG: dict[str, Any] = {"max_attempts": 60, "retry_delay": 0.05, "idle_timeout": 0.5, "check_mail_interval": 2.0}
ORDERS = 3
PARTS = 3


def _count(turn: Turn) -> None:
    """Count in the state what was done. Turns that run side by side share it, but no name in it."""
    done = f"{turn.kind} {turn.subject}{turn.text}"
    turn.state[done] = turn.state.get(done, 0) + 1


async def boss(turn: Turn) -> AsyncIterator[str]:
    """Ask the clerk, give the worker parts in order, write to the porter, and publish an event."""
    _count(turn)
    if turn.kind != "task":
        return
    number = await turn.ask("agent:clerk", f"number for {turn.text}?", deadline=300.0)
    for part in range(PARTS):
        await turn.send("agent:worker", f"{turn.text}.{part}")
        await asyncio.sleep(0.06 if part == 1 else 0.0)  # long enough for some to leave on the way
    await turn.mail("agent:porter", f"about {turn.text}", number)
    await turn.publish("order.taken", {"order": turn.text})
    await asyncio.sleep(0.1 * (turn.attempt > 1))  # who tries again has what it sends leave on the way
    yield number


async def clerk(turn: Turn) -> AsyncIterator[str]:
    _count(turn)
    yield f"no. {turn.text}"


async def worker(turn: Turn) -> AsyncIterator[str]:
    _count(turn)
    await asyncio.sleep(0.02)
    if turn.text.endswith(".2"):
        await turn.mail("user:ann", f"finished {turn.text}", "all of it")
        await asyncio.sleep(0.1 * (turn.attempt > 1))
    yield "ok"


async def porter(turn: Turn) -> AsyncIterator[str]:
    """Answers mail, hears of orders, and naps after each."""
    _count(turn)
    if turn.kind == "event":
        await turn.sleep(3.0)
    yield f"thanks for {turn.text}" if turn.kind == "mail" else ""


async def owl(turn: Turn) -> AsyncIterator[str]:
    """Sleeps for a while after each task, and wakes by the clock alone."""
    _count(turn)
    await turn.sleep(4.0)
    yield "hu"


BRAINS: dict[str, roost.Brain] = {"boss": boss, "clerk": clerk, "worker": worker, "porter": porter, "owl": owl}


async def story(service: AsyncAgentService) -> None:
    """As a program that may be started again at any moment: what is there already is there already."""
    for name in BRAINS:
        await _create(service, name)
    with contextlib.suppress(roost.Conflict):
        every = timedelta(seconds=2)
        await insist(
            lambda: service.schedules.create("ann", "clerk", "tick", every=every, name="ticks", overlap="queue_all")
        )
    tasks = [await _send(service, "boss", f"order {n}") for n in range(ORDERS)]
    tasks += [await _send(service, "owl", f"hoot {n}") for n in range(2)]
    for name in ("boss", "clerk", "worker", "boss", "worker", "boss", "worker"):
        await asyncio.sleep(0.07)
        await insist(partial(service.agents.restart, "ann", name))
    for task in tasks:
        await aeventually(partial(_is_over, service, task), within=1_000)
    await aeventually(partial(_is_finished, service), within=1_000)


async def _create(service: AsyncAgentService, name: str) -> None:
    subscriptions = ["order.*"] if name == "porter" else []
    with contextlib.suppress(roost.Conflict):
        await insist(lambda: service.agents.create("ann", name, profile=name, subscriptions=subscriptions, **CONFIG))


async def _send(service: AsyncAgentService, to: str, what: str) -> str:
    return await insist(lambda: service.tasks.send("ann", to, what, key=what))


async def _is_over(service: AsyncAgentService, task: str) -> bool:
    return (await service.tasks.get("ann", task)).is_over


async def _is_finished(service: AsyncAgentService) -> bool:
    mail = await service.mail.inbox("ann", limit=100)
    return len([one for one in mail if one.subject.startswith("finished")]) >= ORDERS


# --- what must hold ---------------------------------------------------------------------------------


SPARED: dict[str, tuple[str, ...]] = {
    "order": ("handover_lost", "handover_delayed"),
}
"""Checks that do not hold under these faults: late hand-overs are overtaken."""


def simulate(seed: int, faults: Faults | None = None) -> Simulation:
    """Play the story and check that all holds; the simulation, closed."""
    with Simulation(seed=seed, faults=Faults.some(seed) if faults is None else faults) as simulation:
        simulation.play(story, BRAINS, QUICK)
        check(simulation)
    return simulation


def check(simulation: Simulation, spared: Mapping[str, Sequence[str]] = SPARED) -> None:
    """Nothing is lost, doubled or out of order, everyone remembers all that was done, once, and nobody is stuck."""
    spares = {what for what, names in spared.items() if any(simulation.faults.chances[name] for name in names)}
    asleep = _run_until_idle(simulation)
    assert not asleep or "sleep" in spares, f"{asleep} never wake up"
    nothing_lost(simulation)
    all_ended(simulation, End.DONE)
    if "twice" not in spares:
        nothing_twice(simulation)
    if "order" not in spares:
        in_order(simulation)
    if "state" not in spares:
        all_remembered(simulation)


def _run_until_idle(simulation: Simulation) -> list[Any]:
    """Return the agents that never wake up. A clock that was set back makes a sleep that much longer."""
    asleep: list[Any] = []
    busy: list[str] = []
    for _ in range(100):
        simulation.rest()
        asleep = simulation.rows("SELECT agent_id FROM agents WHERE state = 'sleeping'")
        busy = [one.address for one in simulation.service.roost.dispatcher.all() if not one.is_idle]
        if not asleep and not busy:
            return []
        simulation.advance(5.1)
    assert not busy, f"{busy} never become idle"
    return asleep


def all_remembered(simulation: Simulation) -> None:
    orders = [f"order {n}" for n in range(ORDERS)]
    ticks = simulation.rows("SELECT task_id FROM tasks WHERE schedule_id IS NOT NULL AND status = 'done'")
    expected = {
        "boss": [f"task {o}" for o in orders] + [f"mail Re: about {o}thanks for no. number for {o}?" for o in orders],
        "clerk": [f"task number for {o}?" for o in orders] + ["task tick"] * len(ticks),
        "worker": [f"task {o}.{part}" for o in orders for part in range(PARTS)],
        "porter": [f"mail about {o}no. number for {o}?" for o in orders] + ["event order.taken"] * ORDERS,
        "owl": ["task hoot 0", "task hoot 1"],
    }
    for name, state in simulation.rows("SELECT agent_id, memory FROM agents"):
        remembered = sorted(Counter(json.loads(state or "{}")).elements())
        assert remembered == sorted(expected[name]), f"{name} remembers {remembered}"
