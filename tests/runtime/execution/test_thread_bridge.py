"""A blocking generator can do all that an async one does: its methods block its own thread, and no other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, PlainTurn, Turn, TurnStopped
from roost.testing import Faults, Simulation
from tests.runtime.conftest import QUICK, World, becomes, ended, said, until


async def echo(turn: Turn) -> AsyncIterator[str]:
    yield f"echo {turn.text}"


def busy(turn: PlainTurn) -> Iterator[str]:
    """Uses everything there is, and says what came of it."""
    turn.state["turns"] = turn.state.get("turns", 0) + 1
    yield turn.mail("user:ann", "news", "…")[:5]
    turn.send("agent:ear", "sent")
    yield f" told {turn.broadcast('all', ids='ear')}"
    yield turn.publish("ready", {"n": 1})[:6]
    yield f" {turn.ask('agent:echo', 'hello', deadline=5)}"
    yield f" {turn.step('count', lambda: 41) + 1}"
    with turn.model_call("m", {"q": 1}) as call:
        call.response = "thought"
    yield f" {call.response}"
    turn.remember("the sky is blue", key="sky")
    yield f" {[memory.text for memory in turn.recall('sky')]} {turn.forget('nothing')}"
    try:
        turn.mail("user:bob", "news", "…")
    except roost.NotFound:
        yield " refused"
    yield f" {turn.call_tool('double', {'number': 4})}"
    turn.sleep(3600)


@roost.tool
def double(number: int) -> int:
    return 2 * number


def test_a_plain_brain_does_all_that_an_async_one_does(world: World) -> None:
    heard: list[str] = []

    async def ear(turn: Turn) -> AsyncIterator[str]:
        heard.append(turn.text)
        yield ""

    async def story(service: AsyncAgentService) -> str | None:
        await service.agents.create("ann", "ear", profile="ear", subscriptions=["ready"])
        await service.agents.create("ann", "echo", profile="echo")
        await service.agents.create("ann", "d", profile="busy")
        over = await service.tasks.wait("ann", await service.tasks.send("ann", "d", "go"))
        await until(lambda: len(heard) == 3)
        assert [mail.subject for mail in await service.mail.inbox("ann")] == ["news"]
        agent = await becomes(lambda: service.agents.get("ann", "d"), lambda one: one.state == "sleeping")
        assert agent.state == "sleeping"
        assert (await service.agents.inspect("ann", "d")).turn_state == {"turns": 1}
        [run] = await service.runs.list("ann", agent="d")
        replay = await service.runs.replay("ann", run.run_id)
        assert (replay.diff, replay.text) == ("", over.result)
        return over.result

    assert world({"ear": ear, "echo": echo, "busy": busy}, story, tools=[double]) == (
        "mail_ told 1event_ echo hello 42 thought ['the sky is blue'] False refused 8"
    )
    assert sorted(heard) == ["all", "ready", "sent"]


def test_plain_brains_that_wait_for_each_other_do_not_block_each_other(world: World) -> None:
    def ring(turn: PlainTurn) -> Iterator[str]:
        if turn.text == "0":
            yield "home"
        else:
            yield turn.ask("agent:e" if turn.agent_id == "d" else "agent:d", str(int(turn.text) - 1), deadline=15)

    async def story(service: AsyncAgentService) -> list[str | None]:
        await service.agents.create_many("ann", ["d", "e"], profile="ring", max_concurrent_tasks=1)
        tasks = [await service.tasks.send("ann", agent, "4") for agent in ("d", "e")]
        return [(await service.tasks.wait("ann", task)).result for task in tasks]

    assert world({"ring": ring}, story) == ["home", "home"]


def test_a_plain_brain_takes_part_in_a_meeting(world: World) -> None:
    def speaker(turn: PlainTurn) -> Iterator[str]:
        if turn.kind == "task":
            turn.call_meeting("lunch", required=["user:ann"])
        elif turn.meeting.why == "opening":
            yield "welcome"
            turn.meeting.say(f"soup, {turn.meeting.me}?")
            turn.meeting.end("soup")

    async def story(service: AsyncAgentService) -> list[str]:
        await service.agents.create("ann", "d", profile="speaker")
        await service.tasks.wait("ann", await service.tasks.send("ann", "d", "go"))
        [meeting] = await service.meetings.list("ann")
        await service.meetings.join("ann", meeting.meeting_id)

        async def look() -> Any:
            return await service.meetings.view("ann", meeting.meeting_id)

        view = await becomes(look, lambda view: view.phase == "ended")
        return [word.text for word in view.words]

    assert world({"speaker": speaker}, story) == ["welcome", "soup, agent:ann/d?"]


# --- stopping ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("careless", [False, True])
def test_a_plain_brain_that_waits_ends_at_once_when_it_is_stopped(world: World, *, careless: bool) -> None:
    """Also one that catches every Exception."""
    raised: list[BaseException] = []

    def waits(turn: PlainTurn) -> Iterator[str]:
        yield "waiting"
        while True:
            try:
                turn.pause(20)
            except Exception:
                if not careless:
                    raise
            except BaseException as error:
                raised.append(error)
                raise

    async def story(service: AsyncAgentService) -> roost.Receipt:
        talk = await service.create_talk_session("ann", profile="waits")
        await service.add_message("ann", talk, "go")
        await said(service, talk, "waiting")
        receipt = await service.stop("ann", talk, wait=5)
        await until(lambda: raised)
        [_, answer] = await ended(service, talk)
        assert answer.status == "interrupted"
        return receipt

    receipt = world({"waits": waits}, story, replace(QUICK, stop_patience=5.0))
    assert (receipt.abandoned, receipt.quiesced is not None) == ((), True)
    assert [type(error) for error in raised] == [TurnStopped]


def test_a_plain_brain_whose_task_is_cancelled_can_do_nothing_more(world: World) -> None:
    late: list[object] = []

    def slow(turn: PlainTurn) -> Iterator[str]:
        try:
            turn.ask("agent:nobody_answers", "well?", deadline=60)
        except TurnStopped as error:
            late.append(str(error))
        try:
            turn.mail("user:ann", "too late", "…")
        except TurnStopped as error:
            late.append(str(error))
        yield "…"

    async def silent(turn: Turn) -> AsyncIterator[str]:
        await asyncio.sleep(30)
        yield ""

    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "nobody_answers", profile="silent")
        await service.agents.create("ann", "d", profile="slow", max_attempts=1)
        task = await service.tasks.send("ann", "d", "go")
        await becomes(lambda: service.agents.get("ann", "d"), lambda one: one.state == "waiting")
        await service.tasks.cancel("ann", task)
        await until(lambda: len(late) == 2)
        assert await service.mail.inbox("ann") == []

    world({"slow": slow, "silent": silent}, story)
    assert set(late) == {"the turn was stopped or is over: its further actions have no effect"}


def test_a_plain_turn_is_not_for_the_loop(world: World) -> None:
    """It would block everything that runs there."""

    def wrong(turn: PlainTurn) -> Iterator[str]:
        async def on_the_loop() -> None:
            turn.mail("user:ann", "news", "…")

        try:
            turn.step("wrong", on_the_loop)
        except roost.BrainFailed as error:
            yield str(error)

    async def story(service: AsyncAgentService) -> str:
        talk = await service.create_talk_session("ann", profile="wrong")
        await service.add_message("ann", talk, "go")
        return (await ended(service, talk))[-1].content

    assert "use it on a thread" in world({"wrong": wrong}, story)


def test_a_plain_brain_survives_crashes_of_its_simulation() -> None:
    def worker(turn: PlainTurn) -> Iterator[str]:
        price = turn.step("price", lambda: 7, check=lambda key: None)
        turn.mail("user:ann", turn.text, str(price))
        yield turn.ask("agent:echo", turn.text, deadline=60)

    async def story(service: AsyncAgentService) -> list[str]:
        for name, profile in (("echo", "echo"), ("d", "worker")):
            with suppress(roost.Conflict):
                await service.agents.create("ann", name, profile=profile, max_attempts=50)
        tasks = [await service.tasks.send("ann", "d", f"task {n}", key=f"k{n}") for n in range(3)]
        assert [(await service.tasks.wait("ann", task)).status for task in tasks] == ["done"] * 3
        return sorted(mail.subject for mail in await service.mail.inbox("ann"))

    crashes = 0
    for seed in range(6):
        with Simulation(seed=seed, faults=Faults(crash=0.01)) as simulation:
            found = simulation.play(story, {"worker": worker, "echo": echo})
            assert found == ["task 0", "task 1", "task 2"], simulation
            crashes += simulation._starts - 1
    assert crashes, "else this shows nothing"


# --- what is not awaited -----------------------------------------------------------------------------------


async def forgets_mail(turn: Turn) -> AsyncIterator[str]:
    turn.mail("user:ann", "news", "…")  # type: ignore[unused-coroutine]
    yield "sent"


async def forgets_sleep(turn: Turn) -> AsyncIterator[str]:
    yield "sleeps"
    turn.sleep(60)  # type: ignore[unused-coroutine]


async def forgets_task(turn: Turn) -> AsyncIterator[str]:
    """A task that waits for the store when the turn is over would have its mail lost."""
    turn.state["task"] = 1
    tasks.append(asyncio.create_task(turn.mail("agent:d", "news", "…")))
    yield "sent"


tasks: list[asyncio.Task[Any]] = []


@pytest.mark.parametrize(
    ("brain", "call"),
    [(forgets_mail, "turn.mail(...)"), (forgets_sleep, "turn.sleep(...)"), (forgets_task, "turn.mail(...)")],
)
def test_what_an_async_brain_does_not_await_is_an_error_of_its_turn(simulated: World, brain: Any, call: str) -> None:
    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="brain", retry_delay=0.01)
        over = await service.tasks.wait("ann", await service.tasks.send("ann", "d", "go"))
        assert (over.status, over.attempts) == ("failed", 1), "another try would forget it too"
        assert f"write `await {call}` there" in str(over.error)

    simulated({"brain": brain}, story)


def test_what_is_given_to_a_task_that_has_not_begun_is_done(world: World) -> None:
    """And a question whose answer nobody wants any more is no error."""

    async def brain(turn: Turn) -> AsyncIterator[str]:
        tasks.append(asyncio.create_task(turn.ask("agent:silent", "well?")))
        await asyncio.sleep(0.1)
        tasks.append(asyncio.create_task(turn.mail("user:ann", "news", "…")))
        yield "sent"

    async def silent(turn: Turn) -> AsyncIterator[str]:
        await asyncio.sleep(5)
        yield ""

    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "silent", profile="silent")
        await service.agents.create("ann", "d", profile="brain")
        over = await service.tasks.wait("ann", await service.tasks.send("ann", "d", "go"))
        assert over.status == "done", over.error
        assert [mail.subject for mail in await service.mail.inbox("ann")] == ["news"]

    world({"brain": brain, "silent": silent}, story)


def test_a_turn_that_acts_often_keeps_only_what_it_waits_for(simulated: World) -> None:
    kept: list[int] = []

    async def brain(turn: Turn) -> AsyncIterator[str]:
        for number in range(5_000):
            await turn.publish(f"n{number}", optional=True)
            kept.append(len(turn._coroutines or ()))
        yield "sent"

    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="brain")
        await service.tasks.wait("ann", await service.tasks.send("ann", "d", "go"))

    simulated({"brain": brain}, story)
    assert max(kept) <= 1_024
