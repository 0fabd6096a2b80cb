"""A disabled user: agents, talks, schedules and webhooks stop until the account is enabled."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.core.webhooks.webhook import Webhook
from roost.testing import FakeReceiver, Simulation

QUICK = roost.Limits(drain=0.3, stop_patience=0.15)
MINUTE = 60.0


class Scene:
    """A service in virtual time, with a user that has an account, and what brains and webhooks did."""

    def __init__(self, simulation: Simulation, receiver: FakeReceiver) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.receiver = receiver
        self.simulation = simulation
        self.service: AsyncAgentService = simulation.start({"slow": self.slow}, QUICK)
        self.simulation.run(self.service.users.add("root", "bob"))
        self.simulation.run(self.service.users.add("root", "ann", role="admin"))
        self.simulation.run(self.service.agents.create("bob", "a", profile="slow"))

    async def slow(self, turn: Turn) -> AsyncIterator[str]:
        self.begun.append(turn.text)
        await asyncio.sleep(5.0)
        self.ended.append(turn.text)
        yield turn.text

    def disable(self) -> None:
        self.simulation.run(self.service.users.disable("ann", "bob"))

    def enable(self) -> None:
        self.simulation.run(self.service.users.enable("ann", "bob"))

    def tasks(self) -> list[str]:
        return [str(task.status) for task in self.simulation.run(self.service.tasks.list("bob"))]


@pytest.fixture
def scene() -> Iterator[Scene]:
    receiver = FakeReceiver()
    with Simulation(poster=receiver) as simulation:
        yield Scene(simulation, receiver)


def test_an_agent_of_a_disabled_user_stops_and_repeats_its_work_later(scene: Scene) -> None:
    scene.simulation.run(scene.service.tasks.send("bob", "a", "one"))
    scene.simulation.advance(2.0)
    assert scene.begun == ["one"]
    scene.disable()
    scene.simulation.run(scene.service.tasks.send("bob", "a", "two"))
    scene.simulation.advance(MINUTE)
    assert (scene.begun, scene.ended) == (["one"], [])
    scene.enable()
    scene.simulation.advance(MINUTE)
    assert sorted(scene.ended) == ["one", "two"]
    assert scene.tasks() == ["done", "done"]


def test_agents_of_others_continue(scene: Scene) -> None:
    scene.simulation.run(scene.service.agents.create("bobby", "a", profile="slow"))
    scene.simulation.run(scene.service.tasks.send("bobby", "a", "one"))
    scene.simulation.advance(2.0)
    scene.disable()
    scene.simulation.advance(MINUTE)
    assert scene.ended == ["one"]


def test_a_schedule_of_a_disabled_user_skips_its_ticks(scene: Scene) -> None:
    scene.simulation.run(
        scene.service.schedules.create("bob", "a", "tick", every=MINUTE, missed="all", overlap="queue_all")
    )
    scene.simulation.advance(MINUTE * 1.5)
    scene.disable()
    scene.simulation.advance(MINUTE * 4)
    scene.enable()
    scene.simulation.advance(MINUTE)
    assert scene.ended == ["tick", "tick"]
    assert len(scene.tasks()) == 2


def test_an_agent_that_should_wake_meanwhile_wakes_when_its_user_is_enabled(scene: Scene) -> None:
    agents = scene.service.agents
    scene.simulation.run(agents.sleep("bob", "a", MINUTE))
    scene.disable()
    scene.simulation.advance(MINUTE * 3)
    assert scene.simulation.run(agents.get("bob", "a")).state == "sleeping"
    scene.enable()
    scene.simulation.advance(MINUTE)
    assert scene.simulation.run(agents.get("bob", "a")).state == "idle"


def test_a_talk_of_a_disabled_user_is_stopped(scene: Scene) -> None:
    talk = scene.simulation.run(scene.service.create_talk_session("bob", profile="slow", busy="queue"))
    for text in ("one", "two"):
        scene.simulation.run(scene.service.add_message("bob", talk, text))
    scene.simulation.advance(2.0)
    scene.disable()
    scene.enable()
    scene.simulation.advance(MINUTE)
    assert (scene.begun, scene.ended) == (["one"], [])


def test_a_webhook_of_a_disabled_user_keeps_its_facts(scene: Scene) -> None:
    made = scene.simulation.run(scene.service.webhooks.create("bob", "http://127.0.0.1:1/", events=["Agent*"]))
    scene.disable()
    scene.simulation.run(scene.service.agents.create("bob", "b", profile="slow"))
    scene.simulation.advance(MINUTE)
    assert scene.receiver.requests == []
    scene.enable()
    scene.simulation.advance(MINUTE)
    assert [json.loads(request.body)["about"] for request in scene.receiver.requests] == ["bob/b"]
    found: Webhook = scene.simulation.run(scene.service.webhooks.get("bob", made.webhook.webhook_id))
    assert found.last_success is not None
