"""A6: mail and events that come before the turn that asks for sleep has ended count."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Brain, Turn
from roost.testing import Simulation
from tests.runtime.agents.test_agents import done, until
from tests.runtime.conftest import QUICK, World, becomes, ended
from tests.runtime.conftest import until as happens

pytestmark = pytest.mark.order

READY = roost.event("ready")


class Gate:
    """A turn that asks for sleep, and ends when it is let go."""

    def __init__(self, condition: roost.wake.Condition = READY) -> None:
        self.condition = condition
        self.begun = self.asked = self.may_ask = self.may_end = False
        self.heard: list[tuple[str, str, Any]] = []

    async def __call__(self, turn: Turn) -> AsyncIterator[str]:
        if turn.text != "wait":
            self.heard.append((turn.kind, turn.text, turn.data))
            return
        self.begun = True
        await happens(lambda: self.may_ask)
        await turn.sleep(wake_on=self.condition)
        self.asked = True
        await happens(lambda: self.may_end)
        yield "slept"

    @property
    def brain(self) -> Brain:
        async def waits(turn: Turn) -> AsyncIterator[str]:
            async for chunk in self(turn):
                yield chunk

        return waits


async def waiting(service: AsyncAgentService, gate: Gate, **config: Any) -> str:
    """Start the turn of the gate; its task."""
    await service.agents.create("ann", "d", profile="waits", **config)
    task = await service.tasks.send("ann", "d", "wait")
    await happens(lambda: gate.begun)
    return task


async def published(service: AsyncAgentService, name: str = "ready", data: Any = None) -> None:
    await service.events.publish("ann", name, data)


async def woken(service: AsyncAgentService, task: str) -> str | None:
    """Return its wake reason, once its turn has ended."""
    await service.tasks.wait("ann", task, timeout=20)
    return (await until(service, lambda agent: agent.wake_reason is not None)).wake_reason


async def heard(gate: Gate, count: int = 1) -> list[tuple[str, str, Any]]:
    await happens(lambda: len(gate.heard) >= count)
    return gate.heard


@pytest.mark.parametrize("when", ["before it asks", "after it asked"])
def test_an_event_that_comes_during_the_turn_wakes_it(world: World, when: str) -> None:
    gate = Gate()

    async def story(service: AsyncAgentService) -> tuple[Any, ...]:
        task = await waiting(service, gate)
        gate.may_ask = when == "after it asked"
        await happens(lambda: gate.asked == gate.may_ask)
        await published(service, data={"n": 1})
        gate.may_ask = gate.may_end = True
        why, told = await woken(service, task), await heard(gate)
        [event] = await service.events.history("ann", name="ready")
        return why, told, event.takers, await service.dead_letters.list("ann")

    assert world({"waits": gate.brain}, story) == ("event ready", [("event", "ready", {"n": 1})], 1, [])


def test_an_event_from_before_the_turn_does_not_count(world: World) -> None:
    gate = Gate()
    gate.may_ask = gate.may_end = True

    async def story(service: AsyncAgentService) -> tuple[str, int]:
        await service.agents.create("ann", "d", profile="waits")
        await published(service)
        await done(service, "wait")
        agent = await until(service, lambda agent: agent.state == "sleeping")
        return agent.state, len(await service.dead_letters.list("ann"))

    assert world({"waits": gate.brain}, story) == ("sleeping", 1)


def test_of_many_events_the_first_that_matches_is_delivered(world: World) -> None:
    gate = Gate(roost.event("alerts.*.fire"))

    async def story(service: AsyncAgentService) -> tuple[Any, ...]:
        task = await waiting(service, gate)
        for name in ("alerts.fire", "alerts.a.b.fire", "alerts.a.fire", "alerts.b.fire"):
            await published(service, name)
        gate.may_ask = gate.may_end = True
        why, told = await woken(service, task), await heard(gate)
        letters = await service.dead_letters.list("ann")
        return why, told, sorted(letter.envelope["name"] for letter in letters)

    assert world({"waits": gate.brain}, story) == (
        "event alerts.a.fire (alerts.*.fire)",
        [("event", "alerts.a.fire", None)],
        ["alerts.a.b.fire", "alerts.b.fire", "alerts.fire"],
    )


def test_one_during_the_turn_and_one_after_it_are_all_of_them(world: World) -> None:
    gate = Gate(roost.all_of(READY, roost.event("steady")))

    async def story(service: AsyncAgentService) -> tuple[Any, ...]:
        task = await waiting(service, gate)
        await published(service)
        gate.may_ask = gate.may_end = True
        await service.tasks.wait("ann", task, timeout=20)
        asleep = await until(service, lambda agent: agent.state == "sleeping")
        await published(service, "steady")
        why = await woken(service, task)
        return asleep.wake_events, why, sorted(await heard(gate, 2))

    both = [("event", "ready", None), ("event", "steady", None)]
    assert world({"waits": gate.brain}, story) == (("steady",), "event ready and event steady", both)


def test_an_event_during_a_turn_of_a_talk_wakes_it(world: World) -> None:
    gate = Gate()

    async def story(service: AsyncAgentService) -> tuple[Any, ...]:
        await service.agents.create("ann", "d", profile="waits")
        talk = await service.create_talk_session("ann", agent="d")
        await service.add_message("ann", talk, "wait")
        await happens(lambda: gate.begun)
        await published(service)
        gate.may_ask = gate.may_end = True
        await ended(service, talk)
        agent = await until(service, lambda agent: agent.wake_reason is not None)
        return agent.wake_reason, await heard(gate), await service.dead_letters.list("ann")

    assert world({"waits": gate.brain}, story) == ("event ready", [("event", "ready", None)], [])


def test_its_own_event_does_not_wake_it_and_that_of_another_turn_does(world: World) -> None:
    async def plays(turn: Turn) -> AsyncIterator[str]:
        if turn.kind == "task":
            await turn.publish("ball", optional=True)
            if turn.text == "serve":
                await turn.mail("user:ann", "served", "now", priority="urgent")
            await asyncio.sleep(0.1)  # so that both have left before the turn ends
            await turn.sleep(wake_on=roost.any_of(roost.event("ball"), roost.event("urgent_mail")))
        yield "played"

    async def story(service: AsyncAgentService) -> tuple[Any, ...]:
        for name in ("d", "e"):
            await service.agents.create("ann", name, profile="plays")
        await done(service, "serve")
        sleeps = (await until(service, lambda agent: agent.state == "sleeping")).wake_events
        task = await service.tasks.send("ann", "e", "return")
        await service.tasks.wait("ann", task, timeout=20)
        return sleeps, await woken(service, task)

    assert world({"plays": plays}, story) == (("ball", "urgent_mail"), "event ball")


def test_what_another_turn_handled_meanwhile_counts_and_is_not_handled_again(world: World) -> None:
    gate = Gate(roost.all_of(READY, roost.mail("high")))

    async def story(service: AsyncAgentService) -> tuple[Any, ...]:
        task = await waiting(service, gate, max_concurrent_tasks=2, subscriptions=["ready"])
        await published(service)
        await service.mail.send("ann", "agent:d", "hello", "read me", priority="high")
        told = sorted(await heard(gate, 2))
        await becomes(lambda: service.agents.get("ann", "d"), lambda agent: agent.queue_depth == 1)
        gate.may_ask = gate.may_end = True
        why = await woken(service, task)
        await until(service, lambda agent: agent.queue_depth == 0)
        return why, told == sorted(gate.heard), [kind for kind, _, _ in told]

    assert world({"waits": gate.brain}, story) == ("event ready and mail high", True, ["event", "mail"])


def test_an_event_that_came_before_a_power_cut_counts_for_the_turn_that_is_repeated(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path, seed=1)
    gate = Gate()

    async def prepares(turn: Turn) -> AsyncIterator[str]:
        await turn.step("prepare", lambda: "prepared") if turn.text == "wait" else None
        async for chunk in gate(turn):
            yield chunk

    service = simulation.start({"waits": prepares}, QUICK)

    async def first() -> None:
        await waiting(service, gate)
        await published(service)

    simulation.run(first())
    simulation.crash()
    gate.may_ask = gate.may_end = True
    service = simulation.start({"waits": prepares}, QUICK)

    async def second() -> tuple[str | None, list[tuple[str, str, Any]], Any]:
        agent = await until(service, lambda agent: agent.wake_reason is not None)
        return agent.wake_reason, await heard(gate), await service.dead_letters.list("ann")

    assert simulation.run(second()) == ("event ready", [("event", "ready", None)], [])
    simulation.crash()


def test_a_met_condition_survives_a_power_cut_right_after_the_turn(tmp_path: Path) -> None:
    """Nothing is in the inbox that would lead to a look."""
    for commits in range(1, 6):
        simulation = Simulation(tmp_path / str(commits), seed=commits)
        (tmp_path / str(commits)).mkdir()
        gate = Gate()
        service = simulation.start({"waits": gate.brain}, QUICK)

        async def first(service: AsyncAgentService = service, gate: Gate = gate) -> None:
            await waiting(service, gate, max_concurrent_tasks=2, subscriptions=["ready"])
            await published(service)
            await heard(gate)
            await until(service, lambda agent: agent.queue_depth == 1)
            gate.may_ask = True
            await happens(lambda: gate.asked)

        simulation.run(first())
        gate.may_end = True
        asleep = "SELECT 1 FROM agents WHERE state = 'sleeping' OR woken IS NOT NULL"
        while not simulation.rows(asleep):
            simulation.advance(0.0005)
        simulation.crash()
        service = simulation.start({"waits": gate.brain}, QUICK)

        async def second(service: AsyncAgentService = service) -> str | None:
            return (await until(service, lambda agent: agent.wake_reason is not None)).wake_reason

        assert simulation.run(second()) == "event ready"
        simulation.crash()


@pytest.mark.parametrize("kind", ["task", "talk"])
def test_whenever_the_event_comes_it_wakes_the_agent_once(tmp_path: Path, kind: str) -> None:
    """The event comes at every moment from the beginning of the turn until long after it."""
    for seed in range(60):
        (tmp_path / str(seed)).mkdir()
        simulation = Simulation(tmp_path / str(seed), seed=seed)
        moment = random.Random(seed).uniform(0.0, 0.012)
        turns: list[str] = []

        async def waits(turn: Turn, turns: list[str] = turns, seed: int = seed) -> AsyncIterator[str]:
            turns.append(turn.kind)
            if turn.kind != "event":
                await asyncio.sleep(0.002)
                await turn.sleep(wake_on=roost.all_of(roost.event(f"ready.{seed}"), roost.event("ready.*")))
                await asyncio.sleep(0.002)
            yield "done"

        service = simulation.start({"waits": waits}, QUICK)
        name = f"d-{kind}-{seed}"

        async def story(
            service: AsyncAgentService = service,
            name: str = name,
            moment: float = moment,
            seed: int = seed,
            turns: list[str] = turns,
        ) -> tuple[str | None, Any]:
            await service.agents.create("ann", name, profile="waits")
            if kind == "task":
                await service.tasks.send("ann", name, "wait")
            else:
                await service.add_message("ann", await service.create_talk_session("ann", agent=name), "wait")
            await happens(lambda: turns)
            await asyncio.sleep(moment)
            await service.events.publish("ann", f"ready.{seed}")
            agent = await until(service, lambda agent: agent.wake_reason is not None, name)
            await until(service, lambda agent: agent.queue_depth == 0, name)
            return agent.wake_reason, await service.dead_letters.list("ann")

        reason = f"event ready.{seed} and event ready.{seed} (ready.*)"
        assert simulation.run(story()) == (reason, []), f"seed {seed}"
        assert turns == [kind, "event"], f"seed {seed}"
        simulation.crash()
