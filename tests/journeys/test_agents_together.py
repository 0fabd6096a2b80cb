"""A3, A10, A12: bad agents hurt nobody else, and everything comes back after `kill -9`."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime

import pytest

import roost
from bench import crowd
from tests.conftest import Open, eventually


async def leaks(turn: roost.Turn) -> AsyncIterator[str]:
    threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
    yield "leaked"


def sleeps_in_a_thread(turn: roost.Turn) -> Iterator[str]:
    time.sleep(3)
    yield "slept"


BAD: dict[str, roost.Brain] = {
    **crowd.BAD,
    "leaks": leaks,
    "sleeps": sleeps_in_a_thread,
}


@pytest.mark.alone
@pytest.mark.timeout(90)
def test_bad_agents_do_not_hurt_fifty_healthy_ones(service: Open) -> None:
    roosted = service({**BAD, "works": crowd.works}, limits=roost.Limits(drain=0.2, stop_patience=0.2))
    for name in BAD:
        roosted.agents.create("ann", name, profile=name, max_attempts=2, retry_delay=0.05)
    roosted.agents.create_many("ann", [f"w{number}" for number in range(crowd.AGENTS)], profile="works")

    async def load() -> list[float]:
        await crowd.alone(roosted.asynchronous, 0.2)  # wakes them
        most = await crowd.alone(roosted.asynchronous, 1.0)
        for name in BAD:
            for number in range(3):
                await roosted.asynchronous.tasks.send("ann", name, str(number))
        return await crowd.offered(roosted.asynchronous, most / 2)

    late = sorted(asyncio.run(load()))
    assert late[int(len(late) * 0.99)] < 0.25
    eventually(lambda: len(roosted.dead_letters.list("ann", agent="fails")) == 3)


def test_what_others_do_is_written_while_one_blocks_its_loop(service: Open) -> None:
    release = threading.Event()

    async def blocks_at(turn: roost.Turn) -> AsyncIterator[str]:
        if turn.text == "block":
            release.wait(20)
        yield turn.text

    roosted = service({"blocks_at": blocks_at}, limits=roost.Limits(drain=0.2, stop_patience=0.2))
    try:
        roosted.agents.create("ann", "bad", start=False)
        roosted.agents.create("ann", "good")
        for text in ("quick", "block"):  # one after the other, without letting the loop turn
            roosted.tasks.send("ann", "bad", text)
        roosted.agents.start("ann", "bad")
        eventually(lambda: roosted.agents.get("ann", "bad").state == "active")
        for _ in range(3):
            task = roosted.tasks.send("ann", "good", "hello")
            assert roosted.tasks.wait("ann", task, timeout=10).status == "done"
    finally:
        release.set()


@pytest.mark.timeout(60)
def test_a_stuck_agent_is_seen_and_a_stop_abandons_it(service: Open) -> None:
    release = threading.Event()

    async def stuck(turn: roost.Turn) -> AsyncIterator[str]:
        if turn.text == "get stuck":
            release.wait(30)
        yield "went on"

    limits = roost.Limits(drain=0.2, stop_patience=0.2, silent_loop=1.0)
    roosted = service({"stuck": stuck}, limits=limits)
    try:
        roosted.agents.create("ann", "d", profile="stuck")
        task = roosted.tasks.send("ann", "d", "get stuck")
        eventually(lambda: roosted.agents.get("ann", "d").state == "active")
        eventually(lambda: roosted.monitor.states("ann")["d"].health == "stuck")
        assert roosted.agents.stop("ann", "d").state == "stopped"
        roosted.tasks.cancel("ann", task)
        roosted.agents.start("ann", "d")
        after = roosted.tasks.send("ann", "d", "again")
        assert roosted.tasks.wait("ann", after, timeout=10).result == "went on"
    finally:
        release.set()


def test_two_thousand_due_at_once_are_all_handled_once(service: Open) -> None:
    handled: list[str] = []

    async def notes(turn: roost.Turn) -> AsyncIterator[str]:
        handled.append(str(turn.agent_id))
        yield ""

    roosted = service({"notes": notes})
    ids = [f"a{number:04}" for number in range(1_000)]
    roosted.agents.create_many("ann", ids, profile="notes")
    asynchronous = roosted.asynchronous

    async def schedule() -> None:
        moment = datetime.fromtimestamp(time.time() + 2.0, UTC)
        for name in ("one", "two"):
            await asyncio.gather(
                *(asynchronous.schedules.create("ann", agent, "tick", at=moment, name=name) for agent in ids)
            )

    asyncio.run(schedule())
    eventually(lambda: len(handled) >= 2_000)
    eventually(lambda: not roosted.tasks.list("ann", status="queued"))
    assert sorted(handled) == sorted(ids * 2)
