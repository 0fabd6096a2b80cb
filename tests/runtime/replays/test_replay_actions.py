"""A16: a replay is compared with all actions of the run; missing, added and different ones are reported."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Chunk, Turn
from roost.core.journal.action_log import COMPARED
from roost.testing import Simulation
from tests.runtime.conftest import QUICK, World, ended, said

ACTS: dict[str, Callable[[Turn, str], Awaitable[Any]]] = {
    "mail user:ann": lambda turn, word: turn.mail("user:ann", "news", word),
    "message agent:ear": lambda turn, word: turn.send("agent:ear", word),
    "broadcast": lambda turn, word: turn.broadcast(word, ids="ear"),
    "event ready": lambda turn, word: turn.publish("ready", {"word": word}, optional=True),
    "remember sky": lambda turn, word: turn.remember(word, key="sky"),
    "call lunch": lambda turn, word: turn.call_meeting("lunch", optional=["user:ann"], max_words=len(word)),
    "tool price": lambda turn, word: turn.call_tool("price", {"sku": word}),
}
"""Actions with their labels in a report."""


@roost.tool
def price(sku: str) -> int:
    return len(sku)


class Actor:
    """A brain that does what `plan` says: each act with its words. Its text is always the same."""

    def __init__(self, **plan: list[str]) -> None:
        self.plan = plan

    async def brain(self, turn: Turn) -> AsyncIterator[str | Chunk]:
        if turn.kind == "meeting":
            return
        for name, words in self.plan.items():
            for word in words:
                if name in ACTS:
                    await ACTS[name](turn, word)
                elif name == "thoughts thinking":
                    yield Chunk(word, channel="thinking")
                elif name == "state mood":
                    turn.state["mood"] = word
                elif name.startswith("step "):
                    await turn.step(name.removeprefix("step "), lambda: 1)
                elif name == "question ann/ear":
                    await turn.ask("agent:ear", word)
                elif name == "sleep":
                    await turn.sleep(float(word))
        yield "done"


async def ear(turn: Turn) -> AsyncIterator[str]:
    yield "heard"


async def run_of(service: AsyncAgentService, *, talk: bool = False) -> str:
    """Have the actor act once; the id of that run."""
    await service.agents.create("ann", "ear", profile="ear")
    await service.agents.create("ann", "d", profile="actor")
    if talk:
        talk_id = await service.create_talk_session("ann", agent="d")
        await service.add_message("ann", talk_id, "go")
        assert (await ended(service, talk_id))[-1].status == "complete"
        return (await service.runs.list("ann", talk=talk_id))[0].run_id
    over = await service.tasks.wait("ann", await service.tasks.send("ann", "d", "go"))
    assert over.status == "done", over.error
    return next(one.run_id for one in await service.runs.list("ann", agent="d") if one.kind == "task")


WORDS = {name: ["one"] for name in (*ACTS, "thoughts thinking", "state mood", "question ann/ear")} | {"sleep": ["60"]}


@pytest.mark.parametrize("talk", [False, True])
@pytest.mark.parametrize("name", WORDS)
def test_missing_and_different_actions_are_reported(tmp_path: Path, name: str, *, talk: bool) -> None:
    actor, simulation = Actor(**WORDS), Simulation(tmp_path, 1)

    async def story(service: AsyncAgentService) -> None:
        run = await run_of(service, talk=talk)
        same = await service.runs.replay("ann", run)
        assert (same.diff, same.is_identical) == ("", True)
        actor.plan = {**WORDS, name: []}
        less = await service.runs.replay("ann", run)
        assert (less.diff, less.is_identical, less.text) == (f"missing: {name}", False, "done")
        if name in ("tool price", "question ann/ear"):  # another one would not be on record, and the replay ends there
            return
        actor.plan = {**WORDS, name: ["60000" if name == "sleep" else "something else"]}
        other = await service.runs.replay("ann", run)
        assert (other.diff, other.is_identical) == (f"different: {name}", False)
        actor.plan = {**WORDS, name: WORDS[name] * 2}
        if name not in ("state mood", "thoughts thinking"):
            more = await service.runs.replay("ann", run)
            assert (more.diff, more.is_identical) == (f"added: {name}", False)

    simulation.play(story, {"actor": actor.brain, "ear": ear}, QUICK, tools=[price])


def test_a_missing_step_is_reported(world: World) -> None:
    actor = Actor(**{"step a": ["x"], "step b": ["x"], "mail user:ann": ["x", "x"]})

    async def story(service: AsyncAgentService) -> None:
        run = await run_of(service)
        actor.plan = {"step b": ["x"], "mail user:ann": ["x"]}
        found = await service.runs.replay("ann", run)
        assert found.diff.splitlines() == ["missing: mail user:ann", "missing: step a"]
        actor.plan = {}
        found = await service.runs.replay("ann", run)
        assert found.diff.splitlines() == ["missing: mail user:ann (2 times)", "missing: step a", "missing: step b"]

    world({"actor": actor.brain, "ear": ear}, story)


def test_what_a_run_does_beside_a_talk_is_compared_as_far_as_the_replay_goes(world: World) -> None:
    async def brain(turn: Turn) -> AsyncIterator[str | Chunk]:
        yield Chunk("well", channel="thinking")
        await turn.mail("user:ann", "news", "…")
        await turn.step("a", lambda: 1)
        yield f"{turn.text}ed "
        turn.state["n"] = 1
        await turn.pause(10 if turn.text == "wait" else -50)
        await turn.step("b", lambda: 2)
        await turn.mail("user:ann", "more news", "…")
        yield "done"

    async def story(service: AsyncAgentService) -> None:
        talk = await service.create_talk_session("ann", profile="brain")
        await service.add_message("ann", talk, "go")
        await ended(service, talk)
        await service.add_message("ann", talk, "wait")
        await said(service, talk, "waited")
        await service.stop("ann", talk, wait=5)
        stopped, whole = await service.runs.list("ann", talk=talk)
        for run, until in ((whole, None), (whole, 0), (whole, 1), (stopped, None), (stopped, 1)):
            replay = await service.runs.replay("ann", run.run_id, until=until)
            assert (replay.diff, replay.is_identical) == ("", True), (run.outcome, until)

    world({"brain": brain}, story)


def test_a_different_wake_time_is_no_difference(world: World) -> None:
    moments = [datetime.now(UTC) + timedelta(days=n) for n in (1, 2)]

    async def brain(turn: Turn) -> AsyncIterator[str]:
        await turn.sleep(until=moments.pop())
        yield "done"

    async def story(service: AsyncAgentService) -> None:
        run = await run_of(service)
        assert (await service.runs.replay("ann", run)).diff == ""

    world({"actor": brain, "ear": ear}, story)


def test_of_very_many_sends_the_number_is_compared(simulated: World) -> None:
    actor = Actor(**{"message agent:ear": ["x"] * (COMPARED + 50)})

    async def story(service: AsyncAgentService) -> None:
        run = await run_of(service)
        assert (await service.runs.replay("ann", run)).diff == ""
        actor.plan["message agent:ear"].pop()
        assert (await service.runs.replay("ann", run)).diff == "missing: further message"

    simulated({"actor": actor.brain, "ear": ear}, story)


def test_what_was_refused_is_not_taken_for_done(world: World) -> None:
    async def brain(turn: Turn) -> AsyncIterator[str]:
        for to in ("user:bob", "user:ann"):
            try:
                await turn.mail(to, "news", "…")
            except roost.NotFound:
                yield "no "
        try:
            await turn.call_tool("nothing", {})
        except roost.ToolFailed:
            yield "no tool"

    async def story(service: AsyncAgentService) -> None:
        run = await run_of(service)
        replay = await service.runs.replay("ann", run)
        assert (replay.diff, replay.text) == ("", "no no tool")

    world({"actor": brain, "ear": ear}, story)


def test_secrets_are_no_difference_and_are_not_shown(world: World) -> None:
    """A replay is given the results of its steps without them."""
    tells = [True]

    async def brain(turn: Turn) -> AsyncIterator[str]:
        found = await turn.step("look", lambda: "the key is sk-planted-4711-0815-value")
        if tells[0]:
            await turn.mail("user:ann", "news", found)
            turn.state[found] = found
        yield "done"

    async def story(service: AsyncAgentService) -> None:
        run = await run_of(service)
        assert (await service.runs.replay("ann", run)).diff == ""
        assert "planted-4711" not in str((await service.runs.get("ann", run)).given)
        tells[0] = False
        diff = (await service.runs.replay("ann", run)).diff
        assert diff.splitlines() == ["missing: mail user:ann", "missing: state the key is •••"]

    world({"actor": brain, "ear": ear}, story)
