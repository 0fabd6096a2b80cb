"""A16, A11 for meetings: each turn leaves a run that can be replayed, and a repeated turn gets the same input."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.core.journal.run_history import Run
from roost.stores.sql import retention
from roost.testing import Crash, Faults, Simulation, aeventually, insist
from tests.runtime.conftest import QUICK, World, becomes, until

pytestmark = pytest.mark.order

LIMITS = replace(QUICK, attempts=1_000)


class Room:
    """A brain that tells all that it sees of a meeting, asks a model about it and acts."""

    def __init__(self) -> None:
        self.acted: list[str] = []
        self.greeting = "hello"
        self.asked = 0

    def tools(self) -> list[roost.Tool]:
        @roost.tool
        async def act(word: str) -> str:
            self.acted.append(word)
            return f"act {len(self.acted)}"

        return [act]

    async def brain(self, turn: Turn) -> AsyncIterator[str]:
        turn.state["turns"] = turn.state.get("turns", 0) + 1
        yield f"{self.greeting} {turn.state['turns']}, {turn.senders} on {turn.subject}: {told(turn)} "
        async with turn.model_call("m", {"prompt": turn.meeting.prompt}) as call:
            if call.recorded is None:
                self.asked += 1
                call.response = f"thought {self.asked}"
        yield f"{call.recorded or call.response} "
        yield await turn.call_tool("act", {"word": f"{turn.agent_id} {turn.state['turns']}"}) + " "
        for who in ("agent:nobody", "agent:late"):
            try:
                await turn.meeting.invite(who)
            except roost.RoostError as error:
                yield f"({error}) "
        yield f"and then {told(turn)}"

    async def open(self, service: AsyncAgentService) -> str:
        for name in ("a", "b", "late"):
            await service.agents.create("ann", name, profile="brain", invitations="ask" if name == "b" else "accept")
        meeting = await service.meetings.call(
            "ann", "lunch", required=["agent:b"], floor="round_robin", max_words=6, by="agent:a"
        )
        await becomes(lambda: service.meetings.view("ann", meeting, seen_by="agent:a"), lambda view: view.is_over)
        return meeting


def told(turn: Turn) -> str:
    one = turn.meeting
    seen = {
        "why": one.why,
        "topic": one.topic,
        "there": one.attendees,
        "present": one.present,
        "chair": one.chair,
        "may": one.may_speak,
        "new": [word.text for word in one.new],
        "history": [m.content for m in turn.history],
        "text": turn.text,
        "words": [word.text for word in one.view.words],
        "phase": one.view.phase,
    }
    return json.dumps(seen)[:3_000]


async def runs_of(service: AsyncAgentService) -> list[Run]:
    return [one for name in ("a", "b", "late") for one in await service.runs.list("ann", agent=name)]


def test_each_turn_of_a_meeting_is_replayed_and_does_nothing(world: World) -> None:
    room = Room()

    async def story(service: AsyncAgentService) -> None:
        meeting = await room.open(service)
        runs = await runs_of(service)
        acted, asked = list(room.acted), room.asked
        view = await service.meetings.view("ann", meeting, seen_by="agent:a")
        assert len(runs) >= 3
        for run in runs:
            assert (run.kind, run.outcome, run.steps, run.meeting_id) == ("meeting", "done", 2, meeting)
            entry = await service.runs.get("ann", run.run_id)
            replay = await service.runs.replay("ann", run.run_id)
            assert (replay.diff, replay.is_identical) == ("", True)
            assert replay.text == entry.text
            assert replay.steps == ("model m", "tool act")
            assert replay.sent[-1].startswith(("in the meeting: said hello", "in the meeting: accepted"))
        assert (room.acted, room.asked) == (acted, asked)
        assert await service.meetings.view("ann", meeting, seen_by="agent:a") == view

    world({"brain": room.brain}, story, tools=room.tools())


def test_a_difference_in_a_meeting_is_reported_and_can_run_live(world: World) -> None:
    room = Room()

    async def story(service: AsyncAgentService) -> None:
        await room.open(service)
        run = (await service.runs.list("ann", agent="a"))[-1]
        acted = list(room.acted)
        room.greeting = "good day"
        other = await service.runs.replay("ann", run.run_id)
        assert not other.is_identical
        assert "+good day 1" in other.diff
        room.greeting = "hello"
        stopped = await service.runs.replay("ann", run.run_id, until=1)
        assert (stopped.is_identical, stopped.stopped_at, stopped.steps) == (True, 1, ("model m",))
        live = await service.runs.replay("ann", run.run_id, until=1, live=True)
        assert live.steps == ("model m", "tool act (live)")
        assert room.acted == [*acted, "a 1"]

    world({"brain": room.brain}, story, tools=room.tools())


def test_without_the_log_of_the_meeting_itis_said_what_is_missing(world: World) -> None:
    room = Room()

    async def story(service: AsyncAgentService) -> None:
        meeting = await room.open(service)
        run = (await service.runs.list("ann", agent="a"))[-1]
        store = service.roost.context.store
        later = service.roost.context.host.clock.now() + 60.0
        await store.write(retention.remove, "meeting_logs", later, [("agent:ann/a", meeting)])
        with pytest.raises(roost.Conflict, match=rf"the log of the meeting '{meeting}' is not kept any more"):
            await service.runs.replay("ann", run.run_id)
        entry = await service.runs.get("ann", run.run_id)
        assert [step.name for step in entry.steps] == ["m", "act"], "it can be looked at all the same"

    world({"brain": room.brain}, story, tools=room.tools())


# --- a turn that is repeated ---------------------------------------------------------------------------


class Listener:
    """A brain whose tool gets what was said, and a ledger of the tool's actions."""

    def __init__(self) -> None:
        self.ledger: dict[str, str] = {}
        self.fails = 0

    def tools(self) -> list[roost.Tool]:
        @roost.tool(check=self.ledger.get)
        async def write(turn: Turn, heard: str) -> str:
            assert turn.step_key not in self.ledger, "it was done twice"
            self.ledger[turn.step_key] = heard
            await asyncio.sleep(0.05)
            return heard

        return [write]

    async def brain(self, turn: Turn) -> AsyncIterator[str]:
        async with turn.model_call("m", {"prompt": turn.meeting.prompt}) as call:
            call.response = call.recorded or "well"
        if turn.meeting.why == "opening":
            return
        heard = "+".join(word.text for word in turn.meeting.new)
        if "model" not in heard or turn.attempt > 1:
            await turn.call_tool("write", {"heard": heard})
        if self.fails >= turn.attempt:
            raise roost.BrainFailed("not yet", kind="tool")
        yield f"noted {heard}"


async def meet(service: AsyncAgentService) -> str:
    """Ann with her agent, as a program that may be started again."""
    if not await service.agents.list("ann"):
        await service.agents.create("ann", "d", profile="brain", max_attempts=100, retry_delay=0.5)
    meeting = await service.meetings.call("ann", "notes", required=["agent:d"], key="once")
    await becomes(lambda: service.meetings.view("ann", meeting), lambda view: view.phase == "running")
    return meeting


async def noted(service: AsyncAgentService, meeting: str) -> list[str]:
    view = await service.meetings.view("ann", meeting)
    return [word.text for word in view.words if word.sender != "user:ann"]


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_crash_at_any_commit_has_the_tool_of_a_meeting_act_once_on_what_it_had_heard(
    tmp_path: Path, side: str
) -> None:
    """Words said meanwhile are for the next turn."""
    crashes = 0
    for commit in range(4, 100, 2):
        folder = tmp_path / str(commit)
        folder.mkdir()
        if not crash_and_return(Simulation(folder, commit), f"crash_{side}", commit):
            break
        crashes += 1
    assert crashes > 4, "the story has fewer commits than it should have"


def crash_and_return(simulation: Simulation, side: str, commit: int) -> bool:
    listener = Listener()

    async def story(service: AsyncAgentService) -> list[str]:
        meeting = await meet(service)
        await service.meetings.say("ann", meeting, "one", key="one")
        await until(lambda: listener.ledger)  # its result is not on record yet
        await service.meetings.say("ann", meeting, "two", key="two")
        said = await becomes(lambda: noted(service, meeting), lambda said: "two" in "".join(said))
        for run in await service.runs.list("ann", agent="d"):
            assert (await service.runs.replay("ann", run.run_id)).diff == ""
        return said

    def start() -> AsyncAgentService:
        return simulation.start({"brain": listener.brain}, QUICK, listener.tools())

    service, crashed = start(), False
    setattr(simulation.database, side, commit)
    try:
        said = simulation.run(story(service))
    except Crash:
        crashed = True
        said = simulation.run(story(start()))
    simulation.crash()
    assert said == [f"noted {heard}" for heard in listener.ledger.values()]
    assert said == ["noted one", "noted two"]
    return crashed


@pytest.mark.parametrize("seed", [0, 1, 3, 14, 20, *(pytest.param(n, marks=pytest.mark.soak) for n in range(21, 150))])
def test_every_word_is_noted_once_whatever_goes_wrong(seed: int) -> None:
    listener, words = Listener(), [f"word{number}" for number in range(6)]

    async def story(service: AsyncAgentService) -> None:
        with contextlib.suppress(roost.Conflict):
            await insist(lambda: service.agents.create("ann", "d", profile="brain", max_attempts=100, retry_delay=0.5))
        meeting = await insist(
            lambda: service.meetings.call("ann", "notes", required=["agent:d"], deadline=9_000.0, key="once")
        )
        for word in words:
            await aeventually(partial(is_said, service, meeting, word), within=5_000)
        await aeventually(lambda: _are_noted(service, meeting, words), within=5_000)

    with Simulation(seed=seed, faults=Faults.some(seed)) as simulation:
        simulation.play(story, {"brain": listener.brain}, LIMITS, listener.tools())
        heard = [word for one in listener.ledger.values() for word in one.split("+")]
        assert heard == words

        async def replayed(service: AsyncAgentService) -> list[str]:
            return [
                (await service.runs.replay("ann", run.run_id)).diff for run in await service.runs.list("ann", agent="d")
            ]

        assert not any(simulation.run(replayed(simulation.service)))


async def is_said(service: AsyncAgentService, meeting: str, word: str) -> bool:
    """Say it as soon as that may be."""
    with contextlib.suppress(roost.Forbidden, roost.Unavailable):
        await service.meetings.say("ann", meeting, word, key=word)
        return True
    return False


async def _are_noted(service: AsyncAgentService, meeting: str, words: list[str]) -> bool:
    said = " ".join(await noted(service, meeting))
    return all(word in said for word in words)


async def failed_once(service: AsyncAgentService, word: str) -> str:
    """A meeting in which a try to answer this word has failed."""
    meeting = await meet(service)
    await service.meetings.say("ann", meeting, word)
    await becomes(lambda: service.runs.list("ann", agent="d"), lambda runs: any(r.outcome == "failed" for r in runs))
    return meeting


@pytest.mark.parametrize(("word", "again"), [("tool", ["tool", "later"]), ("model", ["model+later"])])
def test_a_try_that_failed_is_repeated_as_it_was_if_it_has_done_something(
    simulated: World, word: str, again: list[str]
) -> None:
    listener = Listener()
    listener.fails = 1

    async def story(service: AsyncAgentService) -> None:
        meeting = await failed_once(service, word)
        listener.fails = 0
        await service.meetings.say("ann", meeting, "later")
        said = await becomes(lambda: noted(service, meeting), lambda said: "later" in "".join(said))
        assert said == [f"noted {one}" for one in again]
        assert list(listener.ledger.values()) == again
        runs = await service.runs.list("ann", agent="d")
        listener.fails = 1
        failed = next(run for run in runs if run.outcome == "failed")
        assert (await service.runs.replay("ann", failed.run_id)).diff == "", "as that try has seen it"

    simulated({"brain": listener.brain}, story, tools=listener.tools())


@pytest.mark.parametrize(("word", "outcomes"), [("tool", ["done", "failed"]), ("model", ["failed"])])
def test_a_turn_with_steps_continues_although_the_meeting_is_over(
    simulated: World, word: str, outcomes: list[str]
) -> None:
    listener = Listener()
    listener.fails = 1

    async def story(service: AsyncAgentService) -> None:
        meeting = await failed_once(service, word)
        await service.meetings.end("ann", meeting)
        await becomes(lambda: service.agents.inspect("ann", "d"), lambda found: not found.waiting)
        assert [run.outcome for run in await service.runs.list("ann", agent="d")] == outcomes
        assert list(listener.ledger.values()) == (["tool"] if word == "tool" else [])
        assert await noted(service, meeting) == []

    simulated({"brain": listener.brain}, story, tools=listener.tools())
