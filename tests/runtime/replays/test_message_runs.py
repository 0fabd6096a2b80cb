"""A16 for messages between agents: a message handled with steps leaves a run that can be replayed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.core.journal.run_history import Run
from tests.runtime.conftest import World, becomes, until


class Desk:
    """Agents that send, one that answers with steps, and one that only counts."""

    def __init__(self) -> None:
        self.acted: list[str] = []
        self.greeting = "hello"
        self.counted = 0

    @property
    def brains(self) -> dict[str, roost.Brain]:
        return {"caller": self.caller, "worker": self.worker, "counter": self.counter, "echo": self.echo}

    def tools(self) -> list[roost.Tool]:
        @roost.tool
        async def act(word: str) -> str:
            self.acted.append(word)
            return f"{word} {len(self.acted)}"

        return [act]

    async def caller(self, turn: Turn) -> AsyncIterator[str]:
        """`send`, `broadcast` or `ask`, and what."""
        how, _, what = turn.text.partition(" ")
        if how == "send":
            await turn.send("agent:w", what)
        elif how == "broadcast":
            yield str(await turn.broadcast(what))
        else:
            yield await turn.ask("agent:w", what)

    async def worker(self, turn: Turn) -> AsyncIterator[str]:
        turn.state["turns"] = turn.state.get("turns", 0) + 1
        yield f"{self.greeting} {turn.state['turns']} {turn.sender} {turn.text}: "
        async with turn.model_call("m", {"text": turn.text}) as call:
            if call.recorded is None:
                call.response = f"thought {len(self.acted)}"
        yield f"{call.recorded or call.response} "
        yield await turn.call_tool("act", {"word": turn.text})
        yield str(await turn.step("count", lambda: len(self.acted)))
        if turn.text.startswith("fail"):
            raise roost.BrainFailed("no", kind="tool")

    async def counter(self, turn: Turn) -> AsyncIterator[str]:
        self.counted += 1
        yield "counted"

    async def echo(self, turn: Turn) -> AsyncIterator[str]:
        yield await turn.ask("agent:w", turn.text)

    async def open(self, service: AsyncAgentService) -> None:
        for name, profile in (("a", "caller"), ("w", "worker"), ("c", "counter"), ("e", "echo")):
            await service.agents.create("ann", name, profile=profile, max_attempts=1)


async def told(service: AsyncAgentService, words: str) -> None:
    over = await service.tasks.wait("ann", await service.tasks.send("ann", "a", words))
    assert over.status == "done", over.error


async def runs_of(service: AsyncAgentService, agent: str, count: int) -> list[Run]:
    return await becomes(lambda: service.runs.list("ann", agent=agent), lambda runs: len(runs) >= count)


def test_messages_broadcasts_and_requests_with_steps_are_replayed(world: World) -> None:
    desk = Desk()

    async def story(service: AsyncAgentService) -> None:
        await desk.open(service)
        for number, words in enumerate(("send one", "broadcast two", "ask three", "send fail four"), start=1):
            await told(service, words)
            await runs_of(service, "w", number + (number > 1))
        runs = await runs_of(service, "w", 5)
        assert [(one.kind, one.outcome, one.steps) for one in runs] == [
            ("task", "failed", 3),
            ("task", "done", 3),
            ("task", "done", 3),
            ("task", "done", 3),
            ("task", "done", 3),
        ]
        acted = list(desk.acted)
        for one in runs:
            entry = await service.runs.get("ann", one.run_id)
            assert [(step.kind, step.name) for step in entry.steps] == [
                ("model", "m"),
                ("tool", "act"),
                ("step", "count"),
            ]
            replay = await service.runs.replay("ann", one.run_id)
            assert (replay.diff, replay.text) == ("", entry.text)
            assert replay.steps == ("model m", "tool act", "step count")
        assert desk.acted == acted, "a replay does nothing"
        desk.greeting = "good day"
        other = await service.runs.replay("ann", runs[-1].run_id)
        assert not other.is_identical
        assert "+good day 1 agent:ann/a one" in other.diff
        live = await service.runs.replay("ann", runs[-1].run_id, until=1, live=True)
        assert live.steps == ("model m", "tool act (live)", "step count (live)")
        assert desk.acted == [*acted, "one"]

    world(desk.brains, story, tools=desk.tools())


def test_of_messages_without_steps_nothing_is_kept(world: World) -> None:
    desk = Desk()

    async def story(service: AsyncAgentService) -> None:
        await desk.open(service)
        await told(service, "broadcast two")
        asked = await runs_of(service, "e", 1)
        await runs_of(service, "w", 2)
        assert [one.steps for one in asked] == [1], "the request is recorded"
        replay = await service.runs.replay("ann", asked[0].run_id)
        assert (replay.diff, replay.is_identical) == ("", True)
        await until(lambda: desk.counted == 1)
        await becomes(
            lambda: service.agents.get("ann", "c"), lambda agent: agent.state == "idle" and not agent.queue_depth
        )
        assert await service.runs.list("ann", agent="c") == []

    world(desk.brains, story, tools=desk.tools())


def test_what_a_message_says_is_kept_without_secrets(world: World) -> None:
    desk = Desk()

    async def story(service: AsyncAgentService) -> None:
        await desk.open(service)
        await told(service, "send open with ghp_kneaded0123456789ABCDEFG")
        [run] = await runs_of(service, "w", 1)
        entry = await service.runs.get("ann", run.run_id)
        assert "kneaded" not in json.dumps(entry.given)
        assert entry.given["message"]["sender"] == "agent:ann/a"
        replay = await service.runs.replay("ann", run.run_id)
        assert replay.steps == ("model m", "tool act", "step count"), "steps are found again all the same"

    world(desk.brains, story, tools=desk.tools())


def test_what_is_not_kept_any_more_is_named(world: World) -> None:
    desk = Desk()

    async def story(service: AsyncAgentService) -> None:
        await desk.open(service)
        await told(service, "send one")
        [run] = await runs_of(service, "w", 1)
        [task] = await service.runs.list("ann", agent="a")
        await _removed(service, "steps")
        with pytest.raises(roost.Conflict, match=r"its journal is not kept any more \(keep_journals_days\)"):
            await service.runs.replay("ann", run.run_id)
        assert (await service.runs.replay("ann", task.run_id)).is_identical, "it had no steps"
        await _removed(service, "tasks")
        with pytest.raises(roost.Conflict, match=r"the task '.*' is not kept any more \(keep_tasks_days\)"):
            await service.runs.replay("ann", task.run_id)

    world(desk.brains, story, tools=desk.tools())


async def _removed(service: AsyncAgentService, table: str) -> None:
    """As if retention had come by."""
    store = service.roost.context.store
    await store.write(lambda tx: tx.write(f"DELETE FROM {table}", {}))
