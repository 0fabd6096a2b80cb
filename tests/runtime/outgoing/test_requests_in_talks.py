"""Turns of talks that ask agents: a person talks to a supervisor, which consults workers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Message, Turn
from roost.core.journal.run_history import Replay, RunEntry
from roost.testing import Simulation, simulated
from tests.runtime.conftest import QUICK, World, becomes, ended, short
from tests.runtime.conftest import until as until_so

pytestmark = pytest.mark.order


class Workers:
    """A brain for workers, which can be held up, and what they were asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.release = False

    async def __call__(self, turn: Turn) -> AsyncIterator[str]:
        self.asked.append((turn.sender, turn.text))
        if "slow" in turn.text and "next" not in turn.text:
            await asyncio.sleep(5)
        while turn.text == "hold" and not self.release:  # noqa: ASYNC110 — released on another loop
            await asyncio.sleep(0.005)
        if turn.text.startswith("fail"):
            raise ValueError
        yield f"{turn.text} answered"


async def supervisor(turn: Turn) -> AsyncIterator[str]:
    """Passes messages of talks to the worker; counts all other turns."""
    if turn.kind != "talk":
        turn.state["turns"] = turn.state.get("turns", 0) + 1
        return
    if turn.text.startswith("aloud"):
        yield "asking: "
    try:
        yield await turn.ask("agent:worker", turn.text, deadline=30)
    except roost.NoAnswer as error:
        yield str(error)


def brains() -> tuple[Workers, dict[str, roost.Brain]]:
    workers = Workers()
    return workers, {"supervisor": supervisor, "worker": workers}


async def staffed(service: AsyncAgentService, who: str, attempts: int = 3) -> str:
    """A talk with the profile, or with an agent that has it; and a worker."""
    await service.agents.create("ann", "worker", profile="worker", max_attempts=attempts)
    if who == "profile":
        return await service.create_talk_session("ann", profile="supervisor")
    await service.agents.create("ann", "d", profile="supervisor")
    return await service.create_talk_session("ann", agent="d")


async def say(service: AsyncAgentService, talk: str, text: str, **options: Any) -> list[Message]:
    await service.add_message("ann", talk, text, **options)
    return await ended(service, talk)


@pytest.mark.parametrize(("who", "sender"), [("profile", "user:ann"), ("agent", "agent:ann/d")])
def test_a_turn_of_a_talk_asks_an_agent(world: World, who: str, sender: str) -> None:
    workers, found = brains()

    async def story(service: AsyncAgentService) -> list[Message]:
        return await say(service, await staffed(service, who), "how much?")

    messages = world(found, story)
    assert short(messages)[-1] == ("agent", "how much? answered", "complete")
    assert workers.asked == [(sender, "how much?")]


def test_many_are_asked_at_once_in_talks_side_by_side(world: World) -> None:
    workers, found = brains()

    async def fans_out(turn: Turn) -> AsyncIterator[str]:
        questions = [f"{turn.text} {number}" for number in range(5)]
        answers = await asyncio.gather(*(turn.ask("agent:worker", question) for question in questions))
        yield ", ".join(answers)

    async def story(service: AsyncAgentService) -> list[str]:
        talks = [await staffed(service, "agent"), await service.create_talk_session("ann", profile="supervisor")]
        talks.append(await service.create_talk_session("ann", agent="d"))
        said = await asyncio.gather(*(say(service, talk, f"t{at}") for at, talk in enumerate(talks)))
        return [messages[-1].content for messages in said]

    answers = world({**found, "supervisor": fans_out}, story)
    assert answers == [", ".join(f"t{talk} {number} answered" for number in range(5)) for talk in range(3)]
    assert len(workers.asked) == 15


@pytest.mark.parametrize("who", ["profile", "agent"])
def test_what_the_turn_has_sent_before_leaves_before_the_question(world: World, who: str) -> None:
    heard: list[str] = []

    async def worker(turn: Turn) -> AsyncIterator[str]:
        heard.append(turn.text)
        yield str(len(heard))

    async def tells_and_asks(turn: Turn) -> AsyncIterator[str]:
        await turn.send("agent:worker", "told")
        yield await turn.ask("agent:worker", "asked")

    async def story(service: AsyncAgentService) -> str:
        return (await say(service, await staffed(service, who), "go"))[-1].content

    assert world({"worker": worker, "supervisor": tells_and_asks}, story) == "2"
    assert heard == ["told", "asked"]


@pytest.mark.parametrize("who", ["profile", "agent"])
@pytest.mark.parametrize("how", ["stop", "interrupt", "rollback"])
@pytest.mark.parametrize("text", ["slow", "aloud slow"])
def test_a_question_is_cancelled_with_its_run_and_its_late_answer_is_recorded(who: str, how: str, text: str) -> None:
    workers, found = brains()

    async def story(service: AsyncAgentService) -> tuple[list[Message], RunEntry, Replay]:
        talk = await staffed(service, who)
        await service.add_message("ann", talk, text)
        await until_so(lambda: workers.asked)
        if how == "stop":
            await service.stop("ann", talk)
        else:
            await service.add_message("ann", talk, "next", busy=how)
        messages = await ended(service, talk)
        await asyncio.sleep(20)
        if who == "agent":
            assert not (await service.agents.inspect("ann", "d")).turn_state
            assert (await service.agents.get("ann", "d")).state == "idle"
        first = (await service.runs.list("ann", talk=talk))[-1].run_id
        return messages, await service.runs.get("ann", first), await service.runs.replay("ann", first)

    with simulated(brains=found, limits=QUICK) as simulation:
        messages, run, replay = simulation.run(story(simulation.service))
    assert run.run.outcome == "stopped"
    late = {"cancelled": True, "late": {"text": f"{text} answered"}}
    assert ("ask", "interrupted", late) in [(step.kind, step.outcome, step.result) for step in run.steps]
    assert replay.is_identical, replay.diff
    assert replay.text == ("asking: " if text == "aloud slow" else "")
    if how != "stop":
        assert short(messages)[-1][1:] == (f"{workers.asked[-1][1]} answered", "complete")
        assert "next" in workers.asked[-1][1]


def test_a_cancelled_question_is_asked_anew_by_the_run_after_it(world: World) -> None:
    workers, found = brains()

    async def asks_the_same(turn: Turn) -> AsyncIterator[str]:
        yield await turn.ask("agent:worker", "hold")

    async def story(service: AsyncAgentService) -> list[Message]:
        talk = await staffed(service, "profile")
        await service.agents.configure("ann", "worker", max_concurrent_tasks=2)
        await service.add_message("ann", talk, "one")
        await until_so(lambda: workers.asked)
        await service.add_message("ann", talk, "two")
        await until_so(lambda: len(workers.asked) == 2)
        workers.release = True
        return await ended(service, talk)

    messages = world({**found, "supervisor": asks_the_same}, story)
    assert [m.content for m in messages] == ["one", "two", "hold answered"]


@pytest.mark.parametrize("state", ["busy", "sleeping", "paused"])
def test_a_cancelled_question_that_was_not_begun_is_withdrawn(world: World, state: str) -> None:
    workers, found = brains()

    async def story(service: AsyncAgentService) -> tuple[int, list[str]]:
        talk = await staffed(service, "profile")
        await service.agents.configure("ann", "worker", max_concurrent_tasks=1)
        before = ""
        if state == "busy":
            before = await service.tasks.send("ann", "worker", "hold")
            await until_so(lambda: workers.asked)
        elif state == "sleeping":
            await service.agents.sleep("ann", "worker")
        else:
            await service.agents.pause("ann", "worker")
        await service.add_message("ann", talk, "well?")
        await becomes(lambda: depth(service), lambda found: found == (2 if state == "busy" else 1))
        await service.stop("ann", talk)
        await becomes(lambda: depth(service), lambda found: found == (1 if state == "busy" else 0))
        workers.release = True
        if before:
            await service.tasks.wait("ann", before, timeout=20)
        elif state == "sleeping":
            await service.agents.wake("ann", "worker")
        else:
            await service.agents.resume("ann", "worker")
        last = await service.tasks.send("ann", "worker", "last")
        await service.tasks.wait("ann", last, timeout=20)
        return await depth(service), [text for _, text in workers.asked]

    left, asked = world(found, story)
    assert left == 0
    assert asked == (["hold", "last"] if state == "busy" else ["last"])


async def depth(service: AsyncAgentService) -> int:
    return (await service.agents.get("ann", "worker")).queue_depth


@pytest.mark.parametrize("who", ["profile", "agent"])
def test_an_answer_that_is_late_is_recorded_and_starts_no_turn(who: str) -> None:
    _, found = brains()

    async def hasty(turn: Turn) -> AsyncIterator[str]:
        if turn.kind != "talk":
            turn.state["turns"] = turn.kind
        try:
            yield await turn.ask("agent:worker", turn.text, deadline=1)
        except roost.NoAnswer as error:
            yield str(error)

    async def story(service: AsyncAgentService) -> tuple[str, RunEntry, Replay, object]:
        talk = await staffed(service, who)
        said = (await say(service, talk, "slow"))[-1].content
        await asyncio.sleep(20)
        [run] = await service.runs.list("ann", talk=talk)
        kept = (await service.agents.inspect("ann", "d")).turn_state if who == "agent" else None
        entry, replay = await service.runs.get("ann", run.run_id), await service.runs.replay("ann", run.run_id)
        return said, entry, replay, kept

    with simulated(brains={**found, "supervisor": hasty}, limits=QUICK) as simulation:
        said, run, replay, kept = simulation.run(story(simulation.service))
    assert said == replay.text == "agent:worker has not answered in time"
    assert replay.is_identical
    assert [step.result for step in run.steps] == [{"timeout": True, "late": {"text": "slow answered"}}]
    assert not kept


@pytest.mark.parametrize(
    ("what", "why"),
    [("stop", "it was stopped"), ("delete", "it was deleted"), ("fail", "The agent could not finish because of")],
)
@pytest.mark.parametrize("who", ["profile", "agent"])
def test_a_request_that_cannot_be_answered_fails_at_once(world: World, who: str, what: str, why: str) -> None:
    workers, found = brains()

    async def story(service: AsyncAgentService) -> tuple[str, list[str]]:
        talk = await staffed(service, who, attempts=1)
        await service.add_message("ann", talk, "fail" if what == "fail" else "slow")
        await until_so(lambda: workers.asked)
        if what != "fail":
            await getattr(service.agents, what)("ann", "worker")
        said = (await ended(service, talk))[-1].content
        again = (await say(service, talk, "and now?"))[-1].content if what == "stop" else ""
        return said, [again] if again else []

    said, again = world(found, story)
    assert said.startswith(f"agent:worker could not answer: {why}")
    assert again == (["agent:worker could not answer: it is stopped"] if what == "stop" else [])


def test_an_agent_whose_talk_waits_is_waiting_and_does_other_things(world: World) -> None:
    workers, found = brains()

    async def story(service: AsyncAgentService) -> tuple[str, str | None, str, list[str]]:
        talk = await staffed(service, "agent")
        await service.agents.configure("ann", "d", max_concurrent_tasks=1)
        await service.add_message("ann", talk, "hold")
        first = await becomes(lambda: state(service), lambda found: found == "waiting")
        task = await service.tasks.send("ann", "d", "meanwhile")
        status = (await service.tasks.wait("ann", task, timeout=20)).status
        again = await becomes(lambda: state(service), lambda found: found == "waiting")
        workers.release = True
        await ended(service, talk)
        await becomes(lambda: state(service), lambda found: found == "idle")
        return first, status, again, [m.content for m in await ended(service, talk)]

    assert world(found, story) == ("waiting", "done", "waiting", ["hold", "hold answered"])


async def state(service: AsyncAgentService) -> str:
    return (await service.agents.get("ann", "d")).state


def test_agents_that_ask_in_a_ring_answer_a_talk(world: World) -> None:
    """The talk is with d, which asks e, which asks d itself."""

    async def asks_next(turn: Turn) -> AsyncIterator[str]:
        hops = int(turn.text)
        other = "agent:e" if turn.agent_id == "d" else "agent:d"
        yield f"{turn.agent_id} " + (await turn.ask(other, str(hops - 1)) if hops else "ends")

    async def story(service: AsyncAgentService) -> str:
        for name in ("d", "e"):
            await service.agents.create("ann", name, profile="asks_next", max_concurrent_tasks=1)
        talk = await service.create_talk_session("ann", agent="d")
        return (await say(service, talk, "6"))[-1].content

    assert world({"asks_next": asks_next}, story) == "d e d e d e d ends"


@pytest.mark.parametrize("who", ["profile", "agent"])
@pytest.mark.parametrize("side", ["before", "after"])
def test_a_crash_at_any_commit_asks_once_and_gets_the_answer(tmp_path: Path, who: str, side: str) -> None:
    async def counts(turn: Turn) -> AsyncIterator[str]:
        turn.state["count"] = turn.state.get("count", 0) + 1
        yield f"answer {turn.state['count']}"

    found: dict[str, roost.Brain] = {"supervisor": supervisor, "worker": counts}

    async def go(service: AsyncAgentService, talk: str) -> str:
        await service.add_message("ann", talk, "well?", key="once")
        return (await ended(service, talk))[-1].content

    for commit in range(1, 10):
        (folder := tmp_path / str(commit)).mkdir()
        simulation = Simulation(folder, seed=commit)
        service = simulation.start(found, QUICK)
        talk = simulation.run(staffed(service, who))
        database = simulation.database
        assert database is not None
        setattr(database, f"crash_{side}", database.commits + commit)
        try:
            simulation.run(go(service, talk))
            simulation.crash()
        except KeyboardInterrupt:  # the power was cut
            pass
        again = simulation.run(go(simulation.start(found, QUICK), talk))
        assert again == "answer 1", f"crashed {side} commit {commit}"
        simulation.crash()


def test_a_talk_that_was_closed_while_it_asked_resumes_with_its_request(tmp_path: Path) -> None:
    workers, found = brains()
    url = f"sqlite:///{tmp_path}/asks.db"

    async def first() -> str:
        async with await roost.aopen(url, brains=found, limits=QUICK) as service:
            talk = await staffed(service, "profile")
            await service.add_message("ann", talk, "hold")
            await until_so(lambda: workers.asked)
            return talk

    async def second(talk: str) -> tuple[str, int]:
        workers.release = True
        async with await roost.aopen(url, brains=found, limits=QUICK) as service:
            said = (await ended(service, talk))[-1].content
            return said, len(await service.runs.list("ann", agent="worker"))

    said, runs = asyncio.run(second(asyncio.run(first())))
    assert said == "hold answered"
    assert {text for _, text in workers.asked} == {"hold"}
    assert runs <= 1


def test_the_tool_ask_works_in_a_talk(world: World) -> None:
    _, found = brains()

    async def uses_the_tool(turn: Turn) -> AsyncIterator[str]:
        yield await turn.call_tool("ask", {"to": "agent:worker", "text": turn.text})

    async def story(service: AsyncAgentService) -> tuple[str, bool]:
        talk = await staffed(service, "agent")
        said = (await say(service, talk, "well?"))[-1].content
        [run] = await service.runs.list("ann", talk=talk)
        return said, (await service.runs.replay("ann", run.run_id)).is_identical

    assert world({**found, "supervisor": uses_the_tool}, story) == ("well? answered", True)


@pytest.mark.parametrize("how", ["answered", "stopped"])
def test_a_blocking_brain_asks_in_a_talk(world: World, how: str) -> None:
    workers, found = brains()

    def blocking(turn: roost.PlainTurn) -> Iterator[str]:
        yield turn.ask("agent:worker", turn.text)

    async def story(service: AsyncAgentService) -> tuple[str, list[str]]:
        talk = await staffed(service, "profile")
        if how == "answered":
            await say(service, talk, "well?")
        else:
            await service.add_message("ann", talk, "hold")
            await until_so(lambda: workers.asked)
            await service.stop("ann", talk, wait=5)
        run = (await becomes(lambda: service.runs.list("ann", talk=talk)))[0].run_id
        entry = await becomes(lambda: service.runs.get("ann", run), lambda entry: entry.steps and entry.steps[0].result)
        workers.release = True  # only now: an answer before the end of the run would be its result
        [step] = entry.steps
        return (await ended(service, talk))[-1].content, sorted(step.result)

    said, result = world({**found, "supervisor": blocking}, story)
    assert said == ("well? answered" if how == "answered" else "hold")
    assert result == ["text"] if how == "answered" else result[0] == "cancelled"


def test_a_talk_that_is_deleted_withdraws_its_question() -> None:
    workers, found = brains()

    async def story(service: AsyncAgentService) -> list[str]:
        talk = await staffed(service, "profile")
        await service.agents.configure("ann", "worker", max_concurrent_tasks=1)
        await service.add_message("ann", talk, "slow")
        await until_so(lambda: workers.asked)
        other = await service.create_talk_session("ann", profile="supervisor")
        await service.add_message("ann", other, "well?")
        await becomes(lambda: depth(service), lambda found: found == 2)
        for one in (other, talk):
            await service.delete("ann", one)
        await becomes(lambda: depth(service), lambda found: found == 1)
        await asyncio.sleep(10)
        assert await depth(service) == 0
        return [text for _, text in workers.asked]

    with simulated(brains=found, limits=QUICK) as simulation:
        assert simulation.run(story(simulation.service)) == ["slow"]
        assert simulation.rows("SELECT * FROM steps") == []


def test_an_agent_that_is_started_again_waits_for_the_same_answer() -> None:
    workers, found = brains()

    async def story(service: AsyncAgentService) -> str:
        talk = await staffed(service, "agent")
        await service.add_message("ann", talk, "slow")
        await until_so(lambda: workers.asked)
        await service.agents.stop("ann", "d")
        await asyncio.sleep(10)
        await service.agents.start("ann", "d")
        return (await ended(service, talk))[-1].content

    with simulated(brains=found, limits=QUICK) as simulation:
        assert simulation.run(story(simulation.service)) == "slow answered"
    assert len(workers.asked) == 1
