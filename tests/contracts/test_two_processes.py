"""Two programs on one PostgreSQL database write to the same talks and agents without deadlocks."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from itertools import count
from random import Random
from typing import Any

import pytest
from psycopg import errors

from roost.core.agents.agent import AgentConfig, State
from roost.core.envelopes.effects import Publish, SendMail, SendTask
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.envelopes.outcomes import StateChange
from roost.core.journal.steps import Attempt
from roost.core.limits.usage import Usage
from roost.core.runs import AnswerEnd, Closing, Verdict
from roost.core.values.priority import Priority
from roost.errors import Busy, Conflict, LimitReached, NotFound
from roost.hosts.threads import ThreadHost
from roost.ports import ClaimEnvironment, ClaimRequest
from roost.stores.engine import Engine
from roost.stores.postgres import Postgres
from roost.stores.postgres_connection import DriverConnection
from roost.stores.sql import settlement, tasks
from roost.stores.sql.agents import agents, lifecycle
from roost.stores.sql.inbox import claims, in_progress
from roost.stores.sql.journal import steps
from roost.stores.sql.schedules import schedules
from roost.stores.sql.sending import effects
from roost.stores.sql.talks import messages, runs, talks
from tests.servers import fresh_store

pytestmark = pytest.mark.postgres
TALKS, AGENTS, WRITERS = 12, 8, 16
numbers = count(1)


class SharedPostgres(Postgres):
    """A database without the locks that keep a second program out."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.deadlocks: list[str] = []

    def _take(self) -> None:
        self._owner.commit()

    def _join(self, db: DriverConnection) -> None:
        db.commit()

    def may_retry(self, error: Exception) -> bool:
        if isinstance(error, errors.DeadlockDetected):
            self.deadlocks.append(str(error))
        return super().may_retry(error)


class Node:
    """One of several programs on a database."""

    def __init__(self, url: str) -> None:
        self.database = SharedPostgres(url)
        self.engine = Engine(ThreadHost(), self.database, queued=10_000)
        self.done: Counter[str] = Counter()

    async def write(self, op: Callable[..., Any], *args: Any, key: str = "") -> Any:
        """Write, and count it; a refusal is None."""
        try:
            result = await self.engine.write(op, *args, key=key)
        except (Busy, Conflict, LimitReached, NotFound):
            return None
        self.done[op.__name__] += 1
        return result


@pytest.fixture
def nodes(postgres: str) -> Iterator[tuple[Node, Node]]:
    with fresh_store(postgres) as url:
        made = Node(url), Node(url)
        yield made
        for node in made:
            node.engine.close()


def name(kind: str) -> str:
    return f"{kind}_{next(numbers):08}"


def change(after: State) -> StateChange:
    return StateChange(name("change"), 1.0, None, after, "test", "user:ann")


def event() -> Publish:
    return Publish(name("event"), "ann", "news", {}, Priority.NORMAL, "user:ann", 2.0, optional=True)


def task(address: str, expires: float | None = None) -> SendTask:
    made = name("task")
    return SendTask(
        Envelope(
            made, address, Kind.TASK, made, Priority.NORMAL, "user:ann", "do", 1.0, 1.0, expires=expires, recorded=True
        )
    )


def mail(address: str) -> SendMail:
    made, urgent = name("mail"), Priority.URGENT
    envelope = Envelope(made, address, Kind.MAIL, f"lane {address}", urgent, "user:ann", made, 1.0, 1.0)
    return SendMail(
        made, None, "user:ann", f"agent:{address}", "hi", "hi", urgent, 1.0, None, None, None, envelope, 9.0
    )


def effects_to(random: Random) -> tuple[Any, ...]:
    to = [f"ann/a{number}" for number in random.sample(range(AGENTS), 3)]
    return (task(to[0], expires=1e9), mail(to[1]), task(to[2]), event())


async def answer_talks(node: Node, random: Random) -> None:
    """Post to a talk and settle its turn, which sends to agents; or stop it."""
    talk = f"talk_{random.randrange(TALKS):03}"
    posted = await node.write(messages.post, "ann", talk, "hi", None, None, "t", name("env"), 0.0, 10**6, key=talk)
    if random.random() < 0.2:
        await node.write(runs.stop, "ann", talk, key=talk)
    elif posted is not None:
        attempt = Attempt(posted.envelope.envelope_id, talk, True, posted.epoch, name("run"), "ann", None)
        await node.write(steps.begin, attempt, 1, "step", "s", "k", None, "begun", 2.0, key=attempt.envelope_id)
        closing = Closing(
            attempt.run_id,
            posted.envelope,
            posted.epoch,
            Verdict.DONE,
            "text",
            1.0,
            2.0,
            sent=effects_to(random),
            usage=Usage(1, 1),
            profile="echo",
            answer=AnswerEnd(),
        )
        await node.write(settlement.settle, (closing,), key=talk)


async def work_as_agents(node: Node, random: Random) -> None:
    """Claim agents, send in the middle of their turns, and settle these; or stop agents, fire timers, cancel tasks."""
    keys = random.sample(range(AGENTS), 4)
    world = ClaimEnvironment(1_000.0, lambda: name("change"))
    requests = tuple(ClaimRequest(f"ann/a{key}", random.random() < 0.5) for key in keys)
    claimed = [one for one in await node.write(claims.claim, requests, world) or () if one.ready]
    closings = tuple(
        Closing(name("run"), e, one.epoch, Verdict.DONE, "", 1.0, 2.0, sent=effects_to(random), usage=Usage(1, 1))
        for one in claimed
        for e in one.envelopes[:3]
    )
    for closing in closings[:2]:
        e = closing.envelope
        attempt = Attempt(e.envelope_id, e.address, False, closing.epoch, closing.run_id, "ann", "a")
        sent = (task(f"ann/a{random.randrange(AGENTS)}", expires=1e9),)
        await node.write(in_progress.post_now, attempt, 1, sent, ("k",), 2.0, key=e.envelope_id)
    if random.random() < 0.2:
        await node.write(lifecycle.stop, "ann", f"a{keys[0]}", change(State.STOPPED), event())
        await node.write(lifecycle.start, "ann", f"a{keys[0]}", change(State.IDLE))
    elif random.random() < 0.3 and closings:
        await node.write(tasks.cancel, "ann", closings[0].envelope.envelope_id, 3.0)
        await node.write(schedules.fire, 100.0, lambda: name("task"), lambda *_: False)
    await node.write(settlement.settle, closings)


async def create_talks(node: Node, random: Random) -> None:
    new = name("talk_new")
    await node.write(talks.create, new, "ann", "echo", "queue", "", "{}", 10**6, key=new)
    await node.write(effects.post, random.choice(effects_to(random)))


async def work(node: Node, seed: int, rounds: int) -> None:
    random = Random(seed)
    jobs = [answer_talks, answer_talks, work_as_agents, create_talks]
    for _ in range(rounds):
        await random.choice(jobs)(node, random)


async def together(*tasks: Coroutine[Any, Any, None]) -> None:
    async with asyncio.timeout(500), asyncio.TaskGroup() as group:
        for one in tasks:
            group.create_task(one)


async def set_up(node: Node) -> None:
    await node.write(
        agents.create, "ann", [f"a{number}" for number in range(AGENTS)], AgentConfig(), change(State.IDLE), 100
    )
    for number in range(TALKS):
        await node.write(talks.create, f"talk_{number:03}", "ann", "echo", "queue", "", "{}", 10**6)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("rounds", [12, pytest.param(100, marks=pytest.mark.soak)])
def test_two_programs_on_the_same_talks_and_agents_never_deadlock(nodes: tuple[Node, Node], rounds: int) -> None:
    asyncio.run(set_up(nodes[0]))
    asyncio.run(together(*(work(node, 100 * n + w, rounds) for n, node in enumerate(nodes) for w in range(WRITERS))))
    done = nodes[0].done + nodes[1].done
    assert {op for op, times in done.items() if times > 3} >= {"post", "settle", "stop", "claim", "post_now", "create"}
    assert [node.database.deadlocks for node in nodes] == [[], []]
