"""T12, A3: any exception of a brain, a step or a tool fails its own turn only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

import roost
from roost.runtime.agents.activation import Activation
from roost.runtime.dispatch.dispatcher import Dispatcher
from tests.conftest import Open, eventually, settled


class Odd(BaseException):
    pass


RAISED: list[type[BaseException]] = [
    GeneratorExit,
    SystemExit,
    KeyboardInterrupt,
    StopIteration,
    StopAsyncIteration,
    asyncio.CancelledError,
    Odd,
    RuntimeError,
]
LIMITS = roost.Limits(drain=0.2, stop_patience=1.0, silent_loop=5.0)


def brains(kind: type[BaseException]) -> dict[str, roost.Brain]:
    def fail(*_: object) -> str:
        raise kind

    async def fail_later(*_: object) -> str:
        await asyncio.sleep(0)
        raise kind

    async def from_async(turn: roost.Turn) -> AsyncIterator[str]:
        if turn.text == "raise":
            fail()
        yield "fine"

    async def between(turn: roost.Turn) -> AsyncIterator[str]:
        yield "fine"
        await asyncio.sleep(0)
        if turn.text == "raise":
            fail()

    def from_plain(turn: roost.Turn) -> Iterator[str]:
        if turn.text == "raise":
            fail()
        yield "fine"

    def in_step(act: Callable[..., object]) -> roost.Brain:
        async def brain(turn: roost.Turn) -> AsyncIterator[str]:
            if turn.text == "raise":
                await turn.step("fail", act)
            yield "fine"

        return brain

    async def in_task(turn: roost.Turn) -> AsyncIterator[str]:
        if turn.text == "raise":
            await asyncio.create_task(fail_later())
        yield "fine"

    return {
        "from_async": from_async,
        "between": between,
        "from_plain": from_plain,
        "in_step": in_step(fail),
        "in_async_step": in_step(fail_later),
        "in_task": in_task,
    }


PLACES = list(brains(Odd))


@pytest.mark.parametrize("kind", RAISED)
def test_any_exception_fails_the_task_and_its_agent_continues(service: Open, kind: type[BaseException]) -> None:
    roosted = service(brains(kind), limits=LIMITS)
    for name in PLACES:
        roosted.agents.create("ann", name, profile=name, max_attempts=1)
    bad = {name: roosted.tasks.send("ann", name, "raise") for name in PLACES}
    good = {name: roosted.tasks.send("ann", name, "work") for name in PLACES}
    ended = {name: roosted.tasks.wait("ann", bad[name], timeout=10) for name in PLACES}
    assert {name: (task.status, task.attempts) for name, task in ended.items()} == dict.fromkeys(PLACES, ("failed", 1))
    assert all(task.error for task in ended.values())
    after = {name: roosted.tasks.wait("ann", good[name], timeout=10).result for name in PLACES}
    assert after == dict.fromkeys(PLACES, "fine")
    assert roosted.health().abandoned == 0


@pytest.mark.parametrize("kind", RAISED)
def test_any_exception_fails_the_answer_and_the_talk_continues(service: Open, kind: type[BaseException]) -> None:
    roosted = service(brains(kind), limits=LIMITS)
    for name in PLACES:  # one after the other: what ends a worker's loop interrupts the steps of others there
        talk = roosted.create_talk_session("ann", profile=name)
        roosted.add_message("ann", talk, "raise")
        failed = settled(roosted, "ann", talk)[-1]
        assert (name, failed.status, bool(failed.error)) == (name, "failed", True)
        roosted.add_message("ann", talk, "work")
        assert (name, settled(roosted, "ann", talk)[-1].content) == (name, "fine")


@pytest.mark.parametrize("kind", RAISED)
def test_any_exception_fails_the_tool_call_and_the_brain_continues(service: Open, kind: type[BaseException]) -> None:
    @roost.tool
    def plain() -> str:
        """Fail."""
        raise kind

    @roost.tool
    async def later() -> str:
        """Fail."""
        await asyncio.sleep(0)
        raise kind

    async def uses(turn: roost.Turn) -> AsyncIterator[str]:
        for name in ("plain", "later"):
            try:
                await turn.call_tool(name, {})
            except roost.ToolFailed:
                yield f"{name} failed, "
        yield "and on"

    roosted = service({"uses": uses}, limits=LIMITS, tools=[plain, later])
    roosted.agents.create("ann", "d", profile="uses", max_attempts=1)
    task = roosted.tasks.wait("ann", roosted.tasks.send("ann", "d", "go"), timeout=10)
    assert (task.result, task.error) == ("plain failed, later failed, and on", None)
    eventually(lambda: roosted.agents.get("ann", "d").state == "idle")


def test_work_that_arrives_while_a_lost_agent_is_given_up_is_done_at_once(
    service: Open, no_polling: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    roosted = service(brains(SystemExit), limits=LIMITS)
    sent: list[str] = []
    forget = Dispatcher.forget

    def forget_late(dispatcher: Dispatcher, activation: Activation) -> None:
        """Forget the agent only after its failure was written, and after further work was delivered to it."""
        if not sent:
            eventually(lambda: roosted.tasks.get("ann", bad).status == "failed")
            sent.append(roosted.tasks.send("ann", "in_task", "work"))
            eventually(lambda: activation.depth > 0)
        forget(dispatcher, activation)

    monkeypatch.setattr(Dispatcher, "forget", forget_late)
    roosted.agents.create("ann", "in_task", profile="in_task", max_attempts=1)
    bad = roosted.tasks.send("ann", "in_task", "raise")
    [task] = eventually(lambda: sent)
    assert roosted.tasks.wait("ann", task, timeout=30).result == "fine"
