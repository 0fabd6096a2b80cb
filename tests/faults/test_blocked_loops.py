"""A3, T12: an agent whose loop is blocked works again on another one within seconds, and its neighbours go on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

import roost
from tests.conftest import Open, eventually, settled

LIMITS = roost.Limits(drain=0.2, stop_patience=0.2, silent_loop=1.0)
BLOCKED = "blocked its thread"
ONCE: dict[str, Any] = {"max_attempts": 1, "retry_delay": 0.01}
pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def blocker(release: threading.Event) -> Callable[[roost.Turn], AsyncIterator[str]]:
    """A brain that blocks its loop where the text says so, and what comes after that is for nobody."""

    async def blocks(turn: roost.Turn) -> AsyncIterator[str]:
        if turn.text.startswith("block"):
            release.wait(30)
            turn.state["late"] = True
            yield "too late"
            await turn.mail("user:ann", "too late", "too late")
        elif turn.text == "slow":
            await asyncio.sleep(1.5)
        yield f"did {turn.text}"

    return blocks


def test_an_agent_that_blocks_its_loop_fails_that_task_and_does_the_others(
    service: Open, release: threading.Event
) -> None:
    roosted = service({"blocks": blocker(release)}, limits=LIMITS)
    roosted.agents.create("ann", "d", profile="blocks", **ONCE)
    bad = roosted.tasks.send("ann", "d", "block")
    good = roosted.tasks.send("ann", "d", "good")
    failed = roosted.tasks.wait("ann", bad, timeout=10)
    assert (failed.status, failed.attempts, BLOCKED in (failed.error or "")) == ("failed", 1, True)
    [letter] = roosted.dead_letters.list("ann")
    assert (letter.fault, letter.attempts) == ("blocked", 1)
    assert roosted.tasks.wait("ann", good, timeout=10).result == "did good"
    assert roosted.health().abandoned == 1
    assert roosted.monitor.metrics()["roost_abandoned_threads"].values[()] == 1
    release.set()
    eventually(lambda: roosted.health().abandoned == 0)
    assert roosted.agents.inspect("ann", "d").turn_state == {}
    assert not roosted.mail.inbox("ann")
    eventually(lambda: roosted.monitor.states("ann")["d"].health == "alive")


def test_what_runs_beside_one_that_blocks_is_not_counted_as_tried(service: Open, release: threading.Event) -> None:
    roosted = service({"blocks": blocker(release)}, limits=replace(LIMITS, attempts=1))
    roosted.agents.create("ann", "d", profile="blocks", max_concurrent_tasks=3, **ONCE)
    talk = roosted.create_talk_session("ann", agent="d")
    slow = roosted.tasks.send("ann", "d", "slow")
    eventually(lambda: roosted.agents.inspect("ann", "d").running)
    roosted.add_message("ann", talk, "slow")
    eventually(lambda: len(roosted.agents.inspect("ann", "d").running) >= 1)
    bad = roosted.tasks.send("ann", "d", "block")
    behind = roosted.tasks.send("ann", "d", "behind")
    assert BLOCKED in (roosted.tasks.wait("ann", bad, timeout=10).error or "")
    ended = [roosted.tasks.wait("ann", one, timeout=10) for one in (slow, behind)]
    assert [(one.status, one.attempts) for one in ended] == [("done", 1), ("done", 1)]
    assert settled(roosted, "ann", talk)[-1].content == "did slow"


def test_one_that_blocks_once_is_tried_again(service: Open, release: threading.Event) -> None:
    tries: list[int] = []

    async def blocks_once(turn: roost.Turn) -> AsyncIterator[str]:
        tries.append(turn.attempt)
        if len(tries) == 1:
            release.wait(30)
        yield "done now"

    roosted = service({"blocks": blocks_once}, limits=LIMITS)
    roosted.agents.create("ann", "d", profile="blocks", max_attempts=2, retry_delay=0.01)
    task = roosted.tasks.wait("ann", roosted.tasks.send("ann", "d", "go"), timeout=10)
    assert (task.status, task.result, task.attempts, tries) == ("done", "done now", 2, [1, 2])


def test_a_talk_with_an_agent_that_blocks_fails_with_a_sentence(service: Open, release: threading.Event) -> None:
    roosted = service({"blocks": blocker(release)}, limits=LIMITS)
    roosted.agents.create("ann", "d", profile="blocks", **ONCE)
    talk = roosted.create_talk_session("ann", agent="d")
    roosted.add_message("ann", talk, "block")
    last = settled(roosted, "ann", talk)[-1]
    assert (last.status, BLOCKED in (last.error or "")) == ("failed", True)
    roosted.add_message("ann", talk, "again")
    assert settled(roosted, "ann", talk)[-1].content == "did again"
    release.set()
    eventually(lambda: roosted.health().abandoned == 0)
    assert [m.content for m in roosted.get_messages("ann", talk).messages][-1] == "did again"


def test_a_cancel_of_a_task_that_blocks_frees_its_agent(service: Open, release: threading.Event) -> None:
    roosted = service({"blocks": blocker(release)}, limits=LIMITS)
    roosted.agents.create("ann", "d", profile="blocks")
    bad = roosted.tasks.send("ann", "d", "block")
    eventually(lambda: roosted.agents.inspect("ann", "d").running)
    assert roosted.tasks.cancel("ann", bad).status == "cancelled"
    good = roosted.tasks.send("ann", "d", "good")
    assert roosted.tasks.wait("ann", good, timeout=10).result == "did good"
    assert roosted.tasks.get("ann", bad).status == "cancelled"


def test_with_too_many_threads_given_up_an_agent_stays_stuck_until_one_returns(
    service: Open, release: threading.Event
) -> None:
    roosted = service({"blocks": blocker(release)}, limits=replace(LIMITS, blocked_loops=1))
    tasks = []
    for name in ("a", "b", "c"):
        roosted.agents.create("ann", name, profile="blocks", **ONCE)
        tasks.append(roosted.tasks.send("ann", name, f"block {name}"))
        if name != "c":
            assert BLOCKED in (roosted.tasks.wait("ann", tasks[-1], timeout=10).error or "")
    problem = eventually(lambda: roosted.health().problem) or ""
    assert ("1 agent" in problem, "blocked_loops" in problem) == (True, True)
    assert roosted.health().abandoned == 2
    assert roosted.monitor.states("ann")["c"].health == "stuck"
    assert roosted.tasks.get("ann", tasks[-1]).status == "running"
    release.set()  # it continues on its loop, and nothing of it is lost
    assert roosted.tasks.wait("ann", tasks[-1], timeout=10).result == "too latedid block c"
    eventually(lambda: roosted.health().problem is None)


def test_something_left_behind_that_blocks_an_idle_agent_holds_up_nothing(
    service: Open, release: threading.Event
) -> None:
    async def leaves_a_task(turn: roost.Turn) -> AsyncIterator[str]:
        if turn.text == "leave":
            asyncio.get_running_loop().call_later(0.1, release.wait, 30)
        yield f"did {turn.text}"

    roosted = service({"leaves": leaves_a_task}, limits=LIMITS)
    roosted.agents.create("ann", "d", profile="leaves", idle_timeout=60, **ONCE)
    assert roosted.tasks.wait("ann", roosted.tasks.send("ann", "d", "leave"), timeout=10).result == "did leave"
    awake = roosted.roost.dispatcher.awake("ann/d")
    assert awake is not None
    eventually(lambda: awake.loop.silence() > 0.1)
    assert roosted.tasks.wait("ann", roosted.tasks.send("ann", "d", "more"), timeout=10).result == "did more"
