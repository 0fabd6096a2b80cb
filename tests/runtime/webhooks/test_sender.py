"""Webhooks in a simulation: every chosen fact arrives, whatever fails, and nobody is asked too often."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.core.webhooks import signatures
from roost.core.webhooks.webhook import ChosenFacts, Delivery
from roost.runtime.webhooks.outbox import WebhookOutbox
from roost.testing import FakeReceiver, Faults, ReceivedRequest, Simulation, aeventually, insist
from tests.conftest import Open

URL = "http://127.0.0.1:1/hook?token=abc"
QUICK = roost.Limits(drain=0.3, stop_patience=0.15)
TASKS = 6
SEEDS = [0, *(pytest.param(first, marks=pytest.mark.soak) for first in range(8, 400, 8))]


async def parrot(turn: Turn) -> AsyncIterator[str]:
    yield turn.text


def told(request: ReceivedRequest) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(request.body)
    return found


async def webhook_of(service: AsyncAgentService, **options: Any) -> str:
    made = await service.webhooks.create("ann", URL, **options)
    return made.webhook.webhook_id


def simulated(receiver: FakeReceiver, seed: int = 0, faults: Faults | None = None) -> Simulation:
    return Simulation(seed=seed, faults=faults, poster=receiver)


@pytest.mark.parametrize("first", SEEDS)
def test_every_chosen_fact_arrives_under_one_id_whatever_fails(first: int) -> None:
    for seed in range(first, first + 8):
        check_seed(seed)


def check_seed(seed: int) -> None:
    dice = random.Random(seed)
    receiver = FakeReceiver(lambda _: dice.choice([200, 200, 500, 0, 301]))
    with simulated(receiver, seed, Faults.all()) as simulation:
        simulation.play(story, {"parrot": parrot}, QUICK)
        receiver.answer = lambda _: 200
        while simulation.rows("SELECT 1 FROM webhook_deliveries WHERE state = 'pending'"):
            simulation.advance(3600.0)
        check(simulation, receiver)


async def story(service: AsyncAgentService) -> None:
    if not await insist(lambda: service.webhooks.list("ann")):
        await insist(lambda: service.webhooks.create("ann", URL, events=["TaskSent", "TaskDone"]))
    if not await insist(lambda: service.agents.list("ann")):
        with suppress(roost.Conflict):  # of a commit with an unknown outcome
            await insist(lambda: service.agents.create("ann", "d", profile="parrot", max_attempts=60, retry_delay=0.05))
    for number in range(TASKS):
        await insist(lambda number=number: service.tasks.send("ann", "agent:d", "x", key=str(number)))  # type: ignore[misc]
    await aeventually(lambda: all_done(service), within=3600.0)


async def all_done(service: AsyncAgentService) -> bool:
    tasks = await insist(lambda: service.tasks.list("ann"))
    return len(tasks) == TASKS and all(task.status == "done" for task in tasks)


def check(simulation: Simulation, receiver: FakeReceiver) -> None:
    tasks = {task_id for (task_id,) in simulation.rows("SELECT task_id FROM tasks WHERE status = 'done'")}
    assert len(tasks) == TASKS
    ids: dict[tuple[str, str], set[str]] = {}
    for request in receiver.requests:
        fact = told(request)
        ids.setdefault((fact["type"], fact["data"]["task_id"]), set()).add(request.headers["webhook-id"])
    hooks = simulation.rows("SELECT webhook_id FROM webhooks")
    expected = {(name, task_id) for name in ("TaskSent", "TaskDone") for task_id in tasks}
    assert ids.keys() == expected, "each fact has arrived, and no other"
    assert {len(found) for found in ids.values()} == {len(hooks)}, "each fact has one id for each webhook"


def test_a_delivery_is_tried_for_a_day_then_it_is_a_dead_letter_and_its_webhook_is_paused() -> None:
    receiver = FakeReceiver(lambda _: 500)
    with simulated(receiver) as simulation:
        service = simulation.start({"parrot": parrot}, QUICK)
        webhook_id = simulation.run(webhook_of(service, events=["AgentCreated"], name="ci"))
        started = simulation.clock.now()
        simulation.run(service.agents.create("ann", "d", profile="parrot"))
        simulation.advance(2 * 86_400.0)
        assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1
        assert len(receiver.requests) == 8
        times = [int(request.headers["webhook-timestamp"]) for request in receiver.requests]
        assert 0.7 < (times[-1] - started) / 86_400 < 1.4
        assert all(b - a > a - started for a, b in pairwise(times[1:6])), "later and later"
        [letter] = simulation.run(service.dead_letters.list("ann", kind="webhook"))
        assert (letter.attempts, letter.fault) == (8, "undeliverable")
        hook = simulation.run(service.webhooks.get("ann", webhook_id))
        assert (hook.paused, "500" in str(hook.reason)) == (True, True)
        [mail] = simulation.run(service.mail.inbox("ann"))
        assert mail.subject == "Webhook ci was paused"
        facts = simulation.run(service.monitor.facts("ann")).facts
        assert [fact.data["webhook_id"] for fact in facts if fact.name == "WebhookPaused"] == [webhook_id]
        assert simulation.run(service.dead_letters.retry_all("ann")) == 1
        receiver.answer = lambda _: 200
        simulation.run(service.webhooks.resume("ann", webhook_id))
        simulation.advance(5.0)
        assert [one.state for one in shown(simulation, webhook_id)] == ["delivered"]
        assert receiver.requests[-1].headers["webhook-id"] == receiver.requests[0].headers["webhook-id"]


def shown(simulation: Simulation, webhook_id: str) -> list[Delivery]:
    return simulation.run(simulation.service.webhooks.deliveries("ann", webhook_id))


def created(simulation: Simulation, number: int) -> None:
    ids = [f"d{n}" for n in range(number)]
    simulation.run(simulation.service.agents.create_many("ann", ids, profile="parrot"))


@pytest.mark.parametrize("status", [410])
def test_gone_pauses_at_once_and_what_is_pending_is_sent_after_a_resume(status: int) -> None:
    receiver = FakeReceiver(lambda _: status)
    with simulated(receiver) as simulation:
        service = simulation.start({"parrot": parrot}, QUICK)
        webhook_id = simulation.run(webhook_of(service, events=["AgentCreated"]))
        created(simulation, 10)
        simulation.advance(86_400.0)
        assert len(receiver.requests) <= 4, "those that were in progress together"
        assert simulation.run(service.webhooks.get("ann", webhook_id)).paused
        receiver.answer = lambda _: 200
        simulation.run(service.webhooks.resume("ann", webhook_id))
        simulation.advance(60.0)
        assert [one.state for one in shown(simulation, webhook_id)] == ["delivered"] * 10


def test_while_a_receiver_fails_it_gets_one_request_at_a_time() -> None:
    def answer(_: ReceivedRequest) -> int:
        now = simulation.clock.monotonic()
        open_requests[:] = [end for end in open_requests if end > now]
        open_requests.append(now + 10.0)
        most.append(len(open_requests))
        return 0

    open_requests: list[float] = []
    most: list[int] = []
    with simulated(FakeReceiver(answer)) as simulation:
        service = simulation.start({"parrot": parrot}, QUICK)
        simulation.run(webhook_of(service, events=["AgentCreated"]))
        created(simulation, 40)
        simulation.advance(600.0)
    assert max(most[:8]) <= 4
    assert set(most[8:]) == {1}
    assert len(most) < 70


def test_a_backlog_is_bounded_and_what_is_not_kept_is_counted() -> None:
    receiver = FakeReceiver(lambda _: 0)
    limits = roost.Limits(drain=0.3, stop_patience=0.15, webhook_backlog=20)
    with simulated(receiver) as simulation:
        service = simulation.start({"parrot": parrot}, limits)
        webhook_id = simulation.run(webhook_of(service, events=["AgentCreated"]))
        created(simulation, 50)
        assert simulation.rows("SELECT count(*) FROM webhook_deliveries WHERE state = 'pending'") == [(20,)]
        assert simulation.run(service.webhooks.get("ann", webhook_id)).missed == 30
        receiver.answer = lambda _: 200
        simulation.advance(3600.0)
        simulation.run(service.agents.create("ann", "later"))
        simulation.advance(60.0)
        assert Counter(one.state for one in shown(simulation, webhook_id)) == {"delivered": 21}


def test_requests_are_signed_and_for_a_day_with_the_old_secret_too() -> None:
    receiver = FakeReceiver()
    with simulated(receiver) as simulation:
        service = simulation.start({"parrot": parrot}, QUICK)
        made = simulation.run(service.webhooks.create("ann", URL, events=["AgentCreated"]))
        new = simulation.run(service.webhooks.rotate("ann", made.webhook.webhook_id))
        simulation.run(service.agents.create("ann", "d"))
        simulation.advance(90_000.0)
        simulation.run(service.agents.create("ann", "e"))
        simulation.advance(5.0)
    first, second = receiver.requests

    def is_signed(request: ReceivedRequest, secret: str) -> bool:
        then = float(request.headers["webhook-timestamp"])
        return signatures.verified(secret, request.headers, request.body, then)

    assert [is_signed(first, new.secret), is_signed(first, made.secret)] == [True, True]
    assert [is_signed(second, new.secret), is_signed(second, made.secret)] == [True, False]


@pytest.mark.parametrize("act", ["delete", "pause"])
def test_a_webhook_that_is_deleted_or_paused_gets_nothing_more(act: str) -> None:
    receiver = FakeReceiver()
    with simulated(receiver) as simulation:
        service = simulation.start({"parrot": parrot}, QUICK)
        webhook_id = simulation.run(webhook_of(service))
        simulation.advance(5.0)
        call: Callable[..., Any] = getattr(service.webhooks, act)
        simulation.run(call("ann", webhook_id))
        created(simulation, 5)
        simulation.advance(3600.0)
    assert receiver.requests == []


def test_facts_without_a_commit_arrive_too_and_those_of_others_never() -> None:
    receiver = FakeReceiver()
    with simulated(receiver) as simulation:
        service = simulation.start({"parrot": parrot}, QUICK)
        simulation.run(webhook_of(service, events=["Run*", "Worker*", "Provider*"]))
        for user in ("ann", "bob"):
            talk = simulation.run(service.create_talk_session(user, profile="parrot"))
            simulation.run(service.add_message(user, talk, "hello"))
            simulation.advance(5.0)
        service.roost.context.facts.restarted("roost-worker-1")
        simulation.advance(5.0)
    assert [(told(one)["type"], told(one)["user"]) for one in receiver.requests] == [
        ("RunStarted", "ann"),
        ("RunEnded", "ann"),
    ]


def test_a_dead_letter_is_a_fact_for_webhooks_in_the_same_commit() -> None:
    receiver = FakeReceiver()
    with simulated(receiver) as simulation:
        service = simulation.start({"parrot": parrot}, QUICK)
        simulation.run(webhook_of(service, events=["LetterDied"]))
        simulation.run(service.events.publish("ann", "nobody.hears", {}))
        assert simulation.rows("SELECT event FROM webhook_deliveries") == [("LetterDied",)]
        simulation.advance(5.0)
    assert told(receiver.requests[0])["data"]["fault"] == "untaken"


def test_many_receivers_that_do_not_answer_do_not_hold_up_those_of_others() -> None:
    receiver = FakeReceiver(lambda request: 200 if request.url.endswith("/bob") else 0)
    limits = roost.Limits(drain=0.3, stop_patience=0.15, webhooks_per_user=50, webhook_timeout=10.0)
    with simulated(receiver) as simulation:
        service = simulation.start({"parrot": parrot}, limits)
        for _ in range(50):
            simulation.run(webhook_of(service, events=["AgentCreated"]))
        created(simulation, 30)
        simulation.run(service.webhooks.create("bob", "http://127.0.0.1:1/bob", events=["AgentCreated"]))
        simulation.advance(15.0)
        simulation.run(service.agents.create("bob", "d"))
        simulation.advance(40.0)
    assert [told(one)["user"] for one in receiver.requests if one.url.endswith("/bob")] == ["bob"]


def test_choices_of_two_users_that_change_at_once_are_both_kept(service: Open) -> None:
    outbox = WebhookOutbox(service().roost.context)

    class Choices(dict[str, tuple[ChosenFacts, ...]]):
        """Choices that another user changes while they are taken over."""

        def items(self) -> Any:
            other.start()
            other.join(0.2)  # ends at once, unless it waits
            return super().items()

    def chosen(user: str) -> dict[str, tuple[ChosenFacts, ...]]:
        return {user: (ChosenFacts(f"webhook_{user}", ("*",)),)}

    other = threading.Thread(target=outbox.changed, args=("bob", chosen("bob")))
    outbox.changed("ann", Choices(chosen("ann")))
    other.join(30)
    assert sorted(outbox._choices) == ["ann", "bob"]
