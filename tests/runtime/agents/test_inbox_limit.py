"""A12: an inbox refuses envelopes beyond its limit, whether its agent is awake or not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Conflict, LimitReached, Turn
from roost.runtime.agents import activation
from roost.runtime.dispatch import dispatcher as hall
from tests.runtime.conftest import World, becomes

pytestmark = pytest.mark.order


async def busy(turn: Turn) -> AsyncIterator[str]:
    await asyncio.sleep(3600)
    yield ""


BRAINS: dict[str, roost.Brain] = {"busy": busy}


async def at_work(service: AsyncAgentService, **config: Any) -> None:
    """An agent that is awake, and works on one task endlessly."""
    await service.agents.create("ann", "d", profile="busy", **config)
    await service.tasks.send("ann", "d", "go on")
    await becomes(lambda: service.agents.get("ann", "d"), lambda agent: agent.state == "active")


async def taken(sent: Awaitable[object]) -> bool:
    try:
        await sent
    except LimitReached:
        return False
    return True


async def depth(service: AsyncAgentService) -> int:
    return (await service.agents.get("ann", "d")).queue_depth


def test_what_was_cancelled_makes_room_while_the_agent_works(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await at_work(service, inbox_limit=4)
        waiting = [await service.tasks.send("ann", "d", "later") for _ in range(3)]
        with pytest.raises(LimitReached, match="the inbox of the agent 'd' is full"):
            await service.tasks.send("ann", "d", "too much")
        for task in waiting:
            await service.tasks.cancel("ann", task)
        await becomes(lambda: taken(service.tasks.send("ann", "d", "now")))
        assert await depth(service) == 2

    world(BRAINS, story)


def test_mail_that_does_not_wake_an_agent_counts_while_it_works(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await at_work(service, inbox_limit=3, wake_on_priority="high")
        sent = [await taken(service.mail.send("ann", "agent:d", "s", "b", priority="low")) for _ in range(4)]
        assert sent == [True, True, False, False]
        assert await depth(service) == 3

    world(BRAINS, story)


def test_what_has_no_room_in_ram_counts(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hall, "IN_RAM", 20)
    monkeypatch.setattr(hall, "SHARE", 10)
    monkeypatch.setattr(activation, "SHARE", 10)

    async def story(service: AsyncAgentService) -> None:
        await at_work(service, inbox_limit=30)
        sent = [await taken(service.tasks.send("ann", "d", "later")) for _ in range(40)]
        assert sent == [True] * 29 + [False] * 11
        assert await depth(service) == 30

    world(BRAINS, story)


def test_the_same_task_again_is_the_same_one_also_when_there_is_no_room(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await at_work(service, inbox_limit=2)
        once = await service.tasks.send("ann", "d", "once", key="k")
        assert not await taken(service.tasks.send("ann", "d", "too much"))
        assert not await taken(service.tasks.send("ann", "d", "too much", key="another"))
        assert await service.tasks.send("ann", "d", "once", key="k") == once
        with pytest.raises(Conflict, match="used for another task"):
            await service.tasks.send("ann", "d", "other", key="k")

    world(BRAINS, story)


def test_the_same_mail_again_is_the_same_one_also_when_there_is_no_room(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await at_work(service, inbox_limit=2)
        once = await service.mail.send("ann", "agent:d", "news", "once", key="k")
        assert not await taken(service.mail.send("ann", "agent:d", "news", "too much", key="another"))
        assert await service.mail.send("ann", "agent:d", "news", "once", key="k") == once
        with pytest.raises(Conflict, match="used for another mail"):
            await service.mail.send("ann", "agent:d", "news", "other", key="k")
        assert len(await service.mail.inbox("ann", "agent:d")) == 1

    world(BRAINS, story)


# --- at the same moment ----------------------------------------------------------------------------


async def resting(service: AsyncAgentService, limit: int, **config: Any) -> None:
    """An agent that begins nothing: everything sent to it stays in its inbox."""
    await service.agents.create("ann", "d", inbox_limit=limit, **config)
    await service.agents.pause("ann", "d")


@pytest.mark.parametrize("limit", [1, 7])
def test_of_many_threads_that_send_at_once_as_many_are_accepted_as_there_is_room(tmp_path: Path, limit: int) -> None:
    gate, accepted = threading.Barrier(40), []

    def send(service: roost.AgentService, number: int) -> None:
        gate.wait(20)
        for _ in range(5):
            with suppress(LimitReached):
                if number % 2:
                    accepted.append(service.tasks.send("ann", "d", "work"))
                else:
                    accepted.append(service.mail.send("ann", "agent:d", "news", "work"))

    with roost.open(f"sqlite:///{tmp_path}/threads.db", brains=BRAINS) as service:
        service.agents.create("ann", "d", inbox_limit=limit)
        service.agents.pause("ann", "d")
        threads = [threading.Thread(target=send, args=(service, number)) for number in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert (len(accepted), service.agents.get("ann", "d").queue_depth) == (limit, limit)


def test_all_that_is_sent_at_once_is_accepted_up_to_the_limit(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[int, int]:
        await resting(service, 5)
        sent = [taken(service.tasks.send("ann", "d", str(n), key=f"k{n}" if n % 3 else None)) for n in range(40)]
        sent += [taken(service.mail.send("ann", "agent:d", "news", str(n))) for n in range(10)]
        return sum(await asyncio.gather(*sent)), await depth(service)

    assert world(BRAINS, story) == (5, 5)


def test_events_and_broadcasts_at_once_are_dead_letters_beyond_the_limit(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[int, list[str], int]:
        await resting(service, 5, subscriptions=["news"])
        await asyncio.gather(
            *(service.events.publish("ann", "news") for _ in range(10)),
            *(service.agents.broadcast("ann", "hello") for _ in range(10)),
        )
        letters = await service.dead_letters.list("ann")
        return await depth(service), sorted({letter.fault for letter in letters}), len(letters)

    assert world(BRAINS, story) == (5, ["full"], 15)


def test_of_what_many_turns_send_at_their_ends_there_is_a_dead_letter_for_each_beyond_the_limit(world: World) -> None:
    async def sends(turn: Turn) -> AsyncIterator[str]:
        await turn.send("agent:d", "hello")
        await turn.mail("agent:d", "hello", "there")
        yield "sent"

    async def story(service: AsyncAgentService) -> tuple[int, int, set[str]]:
        await resting(service, 3)
        for number in range(10):
            await service.agents.create("ann", f"s{number}", profile="sends")
        tasks = await asyncio.gather(*(service.tasks.send("ann", f"s{number}", "go") for number in range(10)))
        ends = [await service.tasks.wait("ann", task, timeout=20) for task in tasks]
        refused = sum(2 if end.status == "failed" else 0 for end in ends)  # it was refused before it had sent
        letters = [one for one in await service.dead_letters.list("ann") if one.kind == "outgoing"]
        return await depth(service), len(letters) + refused, {letter.reason for letter in letters}

    held, refused, reasons = world({"sends": sends}, story)
    assert held == 3
    assert refused >= 17  # of a turn that failed at its second send the first may have left
    assert all("the inbox of the agent 'd' is full (3)" in reason for reason in reasons)


def test_concurrent_requests_beyond_the_inbox_limit_are_refused(world: World) -> None:
    async def asks(turn: Turn) -> AsyncIterator[str]:
        answers = [turn.ask("agent:d", str(n), deadline=2.0) for n in range(10)]
        came = await asyncio.gather(*answers, return_exceptions=True)
        yield " ".join(sorted(type(one).__name__ for one in came))

    async def story(service: AsyncAgentService) -> tuple[str | None, int]:
        await resting(service, 4)
        await service.agents.create("ann", "e", profile="asks")
        task = await service.tasks.send("ann", "e", "go")
        return (await service.tasks.wait("ann", task, timeout=20)).result, await depth(service)

    told, held = world({"asks": asks}, story)
    assert (told, held) == (" ".join(["LimitReached"] * 6 + ["NoAnswer"] * 4), 4)


def test_a_limit_that_is_changed_counts_from_then_on(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[bool]:
        await resting(service, 2)
        found = [await taken(service.tasks.send("ann", "d", "work")) for _ in range(3)]
        await service.agents.configure("ann", "d", inbox_limit=3)
        found += [await taken(service.tasks.send("ann", "d", "work")) for _ in range(2)]
        await service.agents.configure("ann", "d", inbox_limit=1)
        found += [await taken(service.tasks.send("ann", "d", "work"))]
        await service.agents.delete("ann", "d")
        await resting(service, 1)
        return found + [await taken(service.tasks.send("ann", "d", "work")) for _ in range(2)]

    assert world(BRAINS, story) == [True, True, False, True, False, False, True, False]


def test_what_is_done_makes_room_again_and_again(world: World) -> None:
    async def quick(turn: Turn) -> AsyncIterator[str]:
        yield "done"

    async def story(service: AsyncAgentService) -> int:
        await service.agents.create("ann", "d", profile="quick", inbox_limit=2)
        for _ in range(20):
            task = await service.tasks.send("ann", "d", "work")
            await service.tasks.wait("ann", task, timeout=20)
        return await depth(service)

    assert world({"quick": quick}, story) == 0
