"""B3: a run that waits long for an approval is suspended: it has no thread, and resumes from the journal."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.core.journal.approvals import Decision, Question
from roost.runtime.execution.turn_execution import TurnExecution
from roost.stores.sql.journal import approvals
from roost.testing import Faults, Simulation, aeventually, insist
from tests.conftest import eventually
from tests.runtime.conftest import QUICK, World, becomes, ended, until
from tests.runtime.journal.test_approvals import DAY, asked, paying
from tests.runtime.meetings.meeting_rooms import all_see, over, running, seen, texts
from tests.runtime.replays.test_meeting_runs import is_said

pytestmark = pytest.mark.order

SOON = replace(QUICK, rest_after=0.05)


async def parked(service: AsyncAgentService, agent: str = "d") -> None:
    """Wait until it has given back its loop."""
    await until(lambda: not service.roost.dispatcher.is_awake(f"ann/{agent}"))


async def waiting_task(service: AsyncAgentService, **options: Any) -> str:
    await service.agents.create("ann", "d", profile="pays", **options)
    task = await service.tasks.send("ann", "d", "pay")
    await asked(service)
    await parked(service)
    return task


def test_an_agent_that_waits_for_approval_is_suspended_and_resumes_after_the_decision(world: World) -> None:
    acted: list[str] = []
    brains, tools = paying(acted)

    async def story(service: AsyncAgentService) -> roost.Task:
        task = await waiting_task(service, task_expiry=60.0, max_attempts=1)
        assert (await service.agents.get("ann", "d")).state == "waiting"
        assert (await service.tasks.get("ann", task)).status == "waiting"
        assert [one.task_id for one in await service.tasks.list("ann", status="waiting")] == [task]
        assert await service.tasks.list("ann", status="queued") == []
        [one] = await service.approvals.list("ann")
        await service.approvals.approve("ann", one.approval_id)
        done = await service.tasks.wait("ann", task)
        runs = await service.runs.list("ann", agent="d")
        assert [run.outcome for run in runs] == ["done", "waiting"]
        assert len(await service.mail.inbox("ann")) == 1, "asked once"
        return done

    done = world(brains, story, SOON, tools)
    assert (done.status, done.result, done.attempts) == ("done", "bill of 5: 5 paid", 1)
    assert acted.count("look") == 1
    assert len(acted) == 2


def test_what_waits_for_a_person_was_begun_and_expires_no_more(simulated: World) -> None:
    brains, tools = paying([])

    async def story(service: AsyncAgentService) -> roost.Task:
        task = await waiting_task(service, task_expiry=2.0)
        expires = (await service.tasks.get("ann", task)).expires
        assert expires is not None
        await until(lambda: service.roost.context.host.clock.now() > expires.timestamp() + 0.1)
        [one] = await service.approvals.list("ann")
        await service.approvals.approve("ann", one.approval_id)
        return await service.tasks.wait("ann", task, timeout=20)

    assert simulated(brains, story, SOON, tools).status == "done"


async def goes(service: AsyncAgentService, *changes: tuple[str, str, str]) -> None:
    """Wait until this is on record of it as the last."""

    async def went() -> list[tuple[str, str, str]]:
        found = (await service.agents.history("ann", "d"))[: len(changes)]
        return [(str(change.before), str(change.after), change.cause) for change in reversed(found)]

    await becomes(went, lambda found: found == list(changes))
    newest = (await service.agents.inspect("ann", "d")).changes[0]
    assert (newest.before, newest.after, newest.cause) == changes[-1]


def test_its_history_says_that_it_waits_for_a_person(world: World) -> None:
    brains, tools = paying([])

    async def other(turn: Turn) -> AsyncIterator[str]:
        if turn.text != "pay":
            yield "done"
            return
        async for piece in brains["pays"](turn):  # type: ignore[union-attr]
            yield str(piece)

    async def story(service: AsyncAgentService) -> None:
        task = await waiting_task(service, idle_timeout=0.1)
        began, waits = ("idle", "active", "task from user:ann"), ("active", "waiting", "waits for a person")
        await goes(service, began, waits)
        await service.tasks.wait("ann", await service.tasks.send("ann", "d", "other"))
        await parked(service)
        await goes(service, waits)
        await service.agents.pause("ann", "d")
        await goes(service, waits, ("waiting", "waiting", "paused"))
        await service.agents.resume("ann", "d")
        await goes(service, ("waiting", "waiting", "paused"), ("waiting", "waiting", "resumed"))
        [one] = await service.approvals.list("ann")
        await service.approvals.approve("ann", one.approval_id)
        await service.tasks.wait("ann", task)
        await parked(service)
        await goes(service, ("waiting", *began[1:]), ("active", "idle", "nothing left to do"))
        task = await service.tasks.send("ann", "d", "pay")
        await asked(service)
        await parked(service)
        await service.tasks.cancel("ann", task)
        await goes(service, waits, ("waiting", "idle", "nothing left to do"))
        await waiting_talk(service, agent="d")
        await parked(service)
        await goes(service, waits)

    world({"pays": other}, story, SOON, tools)


def test_a_suspended_agent_stays_suspended_over_days_and_restarts(tmp_path: Path) -> None:
    acted: list[str] = []
    brains, tools = paying(acted)
    simulation = Simulation(tmp_path, seed=5)
    service = simulation.start(brains, SOON, tools)
    task = simulation.run(waiting_task(service, max_attempts=1))
    for _ in range(4):
        simulation.crash()
        simulation.clock.advance(DAY)
        service = simulation.start(brains, SOON, tools)
        assert not service.roost.dispatcher.is_awake("ann/d")
    [one] = simulation.run(service.approvals.list("ann"))
    simulation.run(service.approvals.approve("ann", one.approval_id))
    done = simulation.run(service.tasks.wait("ann", task))
    simulation.crash()
    assert (done.status, done.result) == ("done", "bill of 5: 5 paid")
    assert len(acted) == 2


def test_a_suspended_task_is_cancelled_at_once(simulated: World) -> None:
    brains, tools = paying([])

    async def story(service: AsyncAgentService) -> None:
        task = await waiting_task(service)
        assert (await service.tasks.cancel("ann", task)).status == "cancelled"
        assert await service.approvals.list("ann") == []
        assert (await service.agents.get("ann", "d")).state == "idle"

    simulated(brains, story, SOON, tools)


def test_an_agent_stopped_or_asleep_while_suspended_resumes_when_it_is_back(simulated: World) -> None:
    acted: list[str] = []
    brains, tools = paying(acted)

    async def story(service: AsyncAgentService) -> list[str | None]:
        results = []
        for away, back in ((service.agents.stop, service.agents.start), (service.agents.sleep, service.agents.wake)):
            await service.agents.create("ann", back.__name__, profile="pays")
            task = await service.tasks.send("ann", back.__name__, "pay")
            [one] = await asked(service)
            await parked(service, back.__name__)
            await away("ann", back.__name__)
            await service.approvals.approve("ann", one.approval_id)
            assert (await service.tasks.wait("ann", task, timeout=0.5)).status == "queued"
            await back("ann", back.__name__)
            results.append((await service.tasks.wait("ann", task)).result)
        return results

    assert simulated(brains, story, SOON, tools) == ["bill of 5: 5 paid"] * 2
    assert len(acted) == 4


def reading(heard: list[str]) -> dict[str, roost.Brain]:
    """One that pays for what it reads first, and one that writes to it."""

    async def reads(turn: Turn) -> AsyncIterator[str]:
        heard.append(turn.text)
        if turn.text == "first":
            await turn.call_tool("pay", {"euros": 1})
        yield "read"

    async def tells(turn: Turn) -> AsyncIterator[str]:
        await turn.send("agent:d", turn.text)
        yield "told"

    return {"reads": reads, "tells": tells}


def test_a_suspended_turn_holds_its_lane_and_nothing_else(simulated: World) -> None:
    acted: list[str] = []
    brains, tools = paying(acted)
    heard: list[str] = []

    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="reads", idle_timeout=60)
        await service.agents.create("ann", "s", profile="tells")
        await service.tasks.wait("ann", await service.tasks.send("ann", "s", "first"))
        [one] = await asked(service)
        await parked(service)
        await service.tasks.wait("ann", await service.tasks.send("ann", "s", "second"))
        other = await service.tasks.send("ann", "d", "other")
        assert (await service.tasks.wait("ann", other)).result == "read"
        assert heard == ["first", "other"]
        await service.approvals.approve("ann", one.approval_id)
        await until(lambda: heard == ["first", "other", "first", "second"])

    simulated({**reading(heard), **brains}, story, SOON, tools)
    assert len(acted) == 1


@pytest.mark.parametrize("restarted", [False, True])
def test_what_stands_behind_it_counts_as_tried_only_when_it_is(tmp_path: Path, restarted: bool) -> None:
    brains, tools = paying([])
    heard: list[str] = []

    async def send_both(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="reads", max_attempts=1)
        await service.agents.create("ann", "s", profile="tells")
        for text in ("first", "second"):  # the second is handed over while the first waits
            await service.tasks.wait("ann", await service.tasks.send("ann", "s", text))
            await asked(service)
        await parked(service)

    async def decide(service: AsyncAgentService) -> None:
        [one] = await service.approvals.list("ann")
        await service.approvals.approve("ann", one.approval_id)
        await until(lambda: heard == ["first", "first", "second"])

    simulation = Simulation(tmp_path, seed=1)
    given: dict[str, roost.Brain] = {**reading(heard), **brains}
    limits = replace(SOON, rest_after=1.0)
    service = simulation.start(given, limits, tools)
    simulation.run(send_both(service))
    if restarted:
        simulation.run(service.close())
        service = simulation.start(given, limits, tools)
    simulation.run(decide(service))
    assert simulation.run(service.dead_letters.list("ann")) == []
    simulation.crash()


@pytest.mark.parametrize("seed", range(5))
def test_a_decision_during_the_suspension_is_heard(tmp_path: Path, seed: int) -> None:
    acted: list[str] = []
    brains, tools = paying(acted)

    async def story(service: AsyncAgentService) -> roost.Task:
        await service.agents.create("ann", "d", profile="pays")
        task = await service.tasks.send("ann", "d", "pay")
        [one] = await asked(service)
        clock = service.roost.context.host.clock
        latest = clock.monotonic() + 0.03 + seed * 0.003
        await until(lambda: clock.monotonic() >= latest)
        await service.approvals.approve("ann", one.approval_id)
        return await service.tasks.wait("ann", task, timeout=5)

    simulation = Simulation(tmp_path, seed)
    done = simulation.run(story(simulation.start(brains, SOON, tools)))
    simulation.crash()
    assert done.result == "bill of 5: 5 paid"
    assert len(acted) == 2


def test_a_decision_just_before_the_suspension_is_found(simulated: World, monkeypatch: pytest.MonkeyPatch) -> None:
    acted: list[str] = []
    brains, tools = paying(acted)
    wanted: list[str] = []
    original = TurnExecution.suspend

    def suspend(self: TurnExecution) -> None:
        shop = self._context
        while wanted:  # and nobody rings
            shop.store.write(approvals.decide, "ann", wanted.pop(), Decision.APPROVED, None, 0.0)
        original(self)

    monkeypatch.setattr(TurnExecution, "suspend", suspend)

    async def story(service: AsyncAgentService) -> tuple[str | None, str]:
        await service.agents.create("ann", "d", profile="pays")
        task = await service.tasks.send("ann", "d", "pay")
        wanted.extend(one.approval_id for one in await asked(service))
        done = await service.tasks.wait("ann", task, timeout=5)
        talk = await service.create_talk_session("ann", profile="pays")
        await service.add_message("ann", talk, "pay")
        wanted.extend(one.approval_id for one in await asked(service))
        return done.result, (await ended(service, talk))[-1].content

    assert simulated(brains, story, SOON, tools) == ("bill of 5: 5 paid", "bill of 5: 5 paid")
    assert len(acted) == 4


def test_a_run_that_does_something_else_beside_does_not_rest(simulated: World) -> None:
    brains, tools = paying([])
    ends: list[bool] = []

    @roost.tool
    async def long(turn: Turn) -> str:
        while not ends:
            await turn.pause(0)
        return "long"

    async def both(turn: Turn) -> AsyncIterator[str]:
        calls = turn.call_tool("long", {}), turn.call_tool("pay", {"euros": 2})
        yield " ".join(await asyncio.gather(*calls))

    async def story(service: AsyncAgentService) -> str | None:
        await service.agents.create("ann", "d", profile="both")
        task = await service.tasks.send("ann", "d", "pay")
        [one] = await asked(service)
        clock = service.roost.context.host.clock
        latest = clock.monotonic() + 0.3
        await until(lambda: clock.monotonic() >= latest)
        assert service.roost.dispatcher.is_awake("ann/d")
        ends.append(True)
        await parked(service)
        await service.approvals.approve("ann", one.approval_id)
        return (await service.tasks.wait("ann", task)).result

    assert simulated({"both": both, **brains}, story, SOON, [*tools, long]) == "long 2 paid"


def test_many_that_wait_have_no_thread(tmp_path: Path) -> None:
    acted: list[str] = []
    brains, tools = paying(acted)
    with roost.open(
        f"sqlite:///{tmp_path}/a.db", brains=brains, tools=tools, limits=replace(SOON, warm_loops=2)
    ) as one:
        names = [f"d{number}" for number in range(50)]
        one.agents.create_many("ann", names, profile="pays")
        tasks = [one.tasks.send("ann", name, "pay") for name in names]
        eventually(lambda: one.roost.dispatcher.count == 0 and len(one.approvals.list("ann")) == 50)
        eventually(lambda: sum(t.name.startswith("roost-agent") for t in threading.enumerate()) <= 2)
        for approval in one.approvals.list("ann"):
            one.approvals.approve("ann", approval.approval_id)
        assert {one.tasks.wait("ann", task, timeout=20).result for task in tasks} == {"bill of 5: 5 paid"}
    assert len(acted) == 100


def test_a_broadcast_to_waiting_agents_reaches_a_suspended_one(world: World) -> None:
    brains, tools = paying([])

    async def story(service: AsyncAgentService) -> None:
        await waiting_task(service)
        await service.agents.create("ann", "other", profile="pays")
        options = {"state": "waiting"}
        assert await service.agents.broadcast("ann", "hello", **options) == 1
        assert (await service.agents.inspect("ann", "d")).agent.queue_depth == 2
        await parked(service)
        assert await service.agents.broadcast("ann", "hello", ids="d", state="idle") == 0

    world(brains, story, SOON, tools)


# --- meetings --------------------------------------------------------------------------------------


def attending(acted: list[str]) -> tuple[dict[str, roost.Brain], list[roost.Tool]]:
    """One that pays for what it hears first, and says what it has heard."""
    _, tools = paying(acted)

    async def attends(turn: Turn) -> AsyncIterator[str]:
        heard = "+".join(word.text for word in turn.meeting.new)
        if "pay" in heard:
            await turn.meeting.say("I ask")
            yield await turn.call_tool("pay", {"euros": len(heard)}) + " for "
        yield heard

    return {"attends": attends}, tools


async def waiting_turn(service: AsyncAgentService) -> str:
    """A meeting in which an agent has been asked to pay, and rests until somebody has decided about it."""
    await service.agents.create("ann", "d", profile="attends", max_attempts=1)
    meeting = await service.meetings.call("ann", "bills", required=["agent:d"])
    await seen(service, meeting, running)
    await service.meetings.say("ann", meeting, "pay")
    await asked(service)
    await parked(service)
    return meeting


def test_a_turn_in_a_meeting_is_suspended_and_resumes_with_what_it_had_heard(world: World) -> None:
    acted: list[str] = []
    brains, tools = attending(acted)

    async def story(service: AsyncAgentService) -> None:
        meeting = await waiting_turn(service)
        assert (await service.agents.get("ann", "d")).state == "waiting"
        await service.meetings.say("ann", meeting, "and then?")
        await parked(service)
        [one] = await service.approvals.list("ann")
        await service.approvals.approve("ann", one.approval_id)
        view = await seen(service, meeting, lambda view: len(view.words) == 5)
        assert texts(view) == ["pay", "I ask", "and then?", "3 paid for pay", "and then?"]
        runs = [run for run in await service.runs.list("ann", agent="d") if run.steps]
        assert [run.outcome for run in runs] == ["done", "waiting"]
        for run in runs:
            assert (await service.runs.replay("ann", run.run_id)).diff == ""

    world(brains, story, SOON, tools)
    assert len(acted) == 1


def test_a_suspended_turn_outlasts_restarts_the_end_of_its_meeting_and_its_retention(tmp_path: Path) -> None:
    acted: list[str] = []
    brains, tools = attending(acted)
    simulation = Simulation(tmp_path, seed=7)
    meeting = simulation.run(waiting_turn(simulation.start(brains, SOON, tools)))
    simulation.crash()
    simulation.clock.advance(DAY)
    service = simulation.start(brains, SOON, tools)
    simulation.run(service.meetings.end("ann", meeting))
    simulation.run(all_see(service, meeting, ["user:ann", "agent:d"], over))
    simulation.crash()
    simulation.clock.advance(100 * DAY)
    service = simulation.start(brains, SOON, tools)

    async def decide() -> None:
        await service.roost.retention.sweep()
        [one] = await service.approvals.list("ann")
        await service.approvals.approve("ann", one.approval_id)
        [run] = await becomes(lambda: service.runs.list("ann", agent="d"), lambda runs: runs)
        assert (run.outcome, run.steps) == ("done", 1)
        await service.roost.retention.sweep()
        with pytest.raises(roost.Forbidden, match="only its minutes are left"):
            await service.meetings.view("ann", meeting, seen_by="agent:d")

    simulation.run(decide())
    simulation.crash()
    assert len(acted) == 1


@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(n, marks=pytest.mark.soak) for n in range(3, 150))])
def test_a_suspended_turn_in_a_meeting_pays_once_whatever_fails(seed: int) -> None:
    acted: list[str] = []
    brains, tools = attending(acted)
    words = ("pay a", "pay bb", "hello")

    async def story(service: AsyncAgentService) -> None:
        with contextlib.suppress(roost.Conflict):
            await insist(lambda: service.agents.create("ann", "d", profile="attends", max_attempts=100))
        meeting = await insist(
            lambda: service.meetings.call("ann", "bills", required=["agent:d"], deadline=9_000.0, key="once")
        )
        for word in words:
            await aeventually(partial(is_said, service, meeting, word), within=5_000)
        await aeventually(partial(is_answered, service, meeting), within=20_000)

    async def is_answered(service: AsyncAgentService, meeting: str) -> bool:
        for one in await insist(lambda: service.approvals.list("ann")):
            with contextlib.suppress(roost.Conflict, roost.Unavailable):
                if one.kind is Question.CALL:
                    await service.approvals.approve("ann", one.approval_id)
                else:  # it was done, and a crash has cut it off before that was on record
                    await service.approvals.answer("ann", one.approval_id, "paid")
        view = await insist(lambda: service.meetings.view("ann", meeting))
        said = " ".join(word.text for word in view.words if word.sender != "user:ann")
        return all(word in said for word in words)

    with Simulation(seed=seed, faults=Faults.some(seed)) as simulation:
        simulation.play(story, brains, replace(SOON, rest_after=0.5, attempts=1_000), tools)
    assert len(set(acted)) == len(acted)


def test_agents_that_were_asked_or_reached_by_a_broadcast_are_suspended(world: World) -> None:
    """A caller has a thread while it waits; an agent that waits for an approval has none."""
    acted: list[str] = []
    brains, tools = paying(acted)

    async def asks(turn: Turn) -> AsyncIterator[str]:
        yield await turn.ask("agent:d", "pay", deadline=30)

    async def tells(turn: Turn) -> AsyncIterator[str]:
        yield str(await turn.broadcast("pay", group="payers"))

    async def story(service: AsyncAgentService) -> None:
        for name in ("d", "e"):
            await service.agents.create("ann", name, profile="pays", groups=["payers"])
        await service.agents.create("ann", "asks", profile="asks")
        await service.agents.create("ann", "tells", profile="tells")
        task = await service.tasks.send("ann", "asks", "go")
        [one] = await asked(service)
        await parked(service)
        assert service.roost.dispatcher.is_awake("ann/asks")
        await service.approvals.approve("ann", one.approval_id)
        assert (await service.tasks.wait("ann", task)).result == "bill of 5: 5 paid"
        await service.tasks.send("ann", "tells", "go")
        found = await asked(service, 2)
        for name in ("d", "e"):
            await parked(service, name)
        for one in found:
            await service.approvals.approve("ann", one.approval_id)
        await until(lambda: len(acted) == 6)

    world({"asks": asks, "tells": tells, **brains}, story, SOON, tools)
    assert acted.count("look") == 3


# --- talks -----------------------------------------------------------------------------------------


async def waiting_talk(service: AsyncAgentService, **options: Any) -> str:
    """A talk whose run has said something, and rests until somebody has decided about what it wants to do."""
    talk = await service.create_talk_session("ann", **(options or {"profile": "pays"}))
    await service.add_message("ann", talk, "pay")
    await asked(service)
    await until(lambda: service.roost.live_talks.known(talk).is_parked)  # type: ignore[union-attr]
    return talk


async def released(service: AsyncAgentService, talk: str) -> None:
    """Wait until no worker has the talk."""
    await until(lambda: not service.roost.dispatcher.placement.holds(talk))


async def shown(service: AsyncAgentService, talk: str) -> list[tuple[str, str]]:
    page = await service.get_messages("ann", talk)
    return [(m.content, str(m.status)) for m in page.messages if m.status != "withdrawn"]


def test_a_suspended_talk_shows_what_was_said_and_continues_it(world: World) -> None:
    acted: list[str] = []
    brains, tools = paying(acted)

    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="pays", idle_timeout=0.1)
        for options, state in (({"profile": "pays"}, "idle"), ({"agent": "d"}, "waiting")):
            talk = await waiting_talk(service, **options)
            await parked(service)
            assert await shown(service, talk) == [("pay", "complete"), ("bill of 5: ", "streaming")]
            there = await service.get_session("ann", talk)
            assert (there.running, there.asking) == (True, True)
            assert (await service.agents.get("ann", "d")).state == state
            [one] = await service.approvals.list("ann")
            await service.approvals.approve("ann", one.approval_id)
            await ended(service, talk)
            assert await shown(service, talk) == [("pay", "complete"), ("bill of 5: 5 paid", "complete")]
            await service.add_message("ann", talk, "again")
            [two] = await asked(service)
            await service.approvals.decline("ann", two.approval_id)
            assert "declined" in (await ended(service, talk))[-1].content
            assert not any(one.asking for one in await service.list_sessions("ann"))

    world(brains, story, SOON, tools)
    assert acted.count("look") == 4
    assert len(acted) == 6


def test_a_suspended_talk_can_be_evicted_from_ram(tmp_path: Path) -> None:
    brains, tools = paying([])
    simulation = Simulation(tmp_path, seed=1)
    talk = simulation.run(waiting_talk(simulation.start(brains, SOON, tools)))
    simulation.crash()
    service = simulation.start(brains, replace(SOON, talks_in_ram=1), tools)
    assert simulation.run(shown(service, talk))[-1] == ("bill of 5: ", "streaming")
    other = simulation.run(service.create_talk_session("ann", profile="pays"))
    talks = service.roost.live_talks
    talks.trim()
    assert (talks.known(talk), talks.known(other) is None) == (None, False)
    [one] = simulation.run(service.approvals.list("ann"))
    simulation.run(service.approvals.approve("ann", one.approval_id))
    assert simulation.run(ended(service, talk))[-1].content == "bill of 5: 5 paid"
    simulation.crash()


AFTERWARDS = {
    "interrupt": ["pay", "bill of 5: ", "what now?", "heard what now?"],
    "rollback": ["pay", "what now?", "heard what now?"],
    "queue": ["pay", "what now?", "bill of 5: 5 paid", "heard what now?"],
    "collect": ["pay", "what now?", "bill of 5: 5 paid", "heard what now?"],
    "steer": ["pay", "what now?", "bill of 5: 5 paid", ", and what now?"],
}


def test_a_message_to_a_suspended_talk_follows_its_policy_and_a_stop_stops_it(world: World) -> None:
    acted: list[str] = []
    brains, tools = paying(acted)

    async def either(turn: Turn) -> AsyncIterator[str | roost.Chunk]:
        if turn.text != "pay":
            yield f"heard {turn.text}"
            return
        async for chunk in brains["pays"](turn):  # type: ignore[union-attr]
            yield chunk
        yield "".join(f", and {message.content}" for message in turn.steered())

    async def story(service: AsyncAgentService) -> None:
        for busy, afterwards in AFTERWARDS.items():
            acted.clear()
            talk = await waiting_talk(service, profile="either")
            await released(service, talk)
            await service.add_message("ann", talk, "what now?", busy=busy)
            if busy not in ("interrupt", "rollback"):
                [one] = await service.approvals.list("ann")
                assert not service.roost.dispatcher.placement.holds(talk), "nobody works on it"
                await service.approvals.approve("ann", one.approval_id)
            await ended(service, talk)
            assert await service.approvals.list("ann") == []
            messages = await shown(service, talk)
            assert [content for content, _ in messages] == afterwards
            assert (messages[1][1] == "interrupted") is (busy == "interrupt")
            assert acted.count("look") == 1

        talk = await waiting_talk(service, profile="either")
        await released(service, talk)
        receipt = await service.stop("ann", talk)
        assert receipt.quiesced is not None, "at once"
        assert await shown(service, talk) == [("pay", "complete"), ("bill of 5: ", "interrupted")]
        assert await service.approvals.list("ann") == []
        assert not (await service.get_session("ann", talk)).running

    world({"either": either, **brains}, story, SOON, tools)


DECIDED_JUST_NOW = {
    "interrupt": [("bill of 5: ", "interrupted"), ("what now?", "complete"), ("heard what now?", "complete")],
    "queue": [("what now?", "complete"), ("bill of 5: 5 paid", "complete"), ("heard what now?", "complete")],
    "stop": [("bill of 5: ", "interrupted")],
}


@pytest.mark.parametrize("what", DECIDED_JUST_NOW)
def test_a_message_or_stop_between_the_decision_and_the_resumption_is_handled(simulated: World, what: str) -> None:
    brains, tools = paying([])
    pays: Any = brains["pays"]

    async def answers(turn: Turn) -> AsyncIterator[str]:
        if turn.text == "pay":
            async for piece in pays(turn):
                yield piece
        else:
            yield f"heard {turn.text}"

    async def story(service: AsyncAgentService) -> None:
        talk = await waiting_talk(service)
        [one] = await service.approvals.list("ann")
        other: Any = (
            service.stop("ann", talk) if what == "stop" else service.add_message("ann", talk, "what now?", busy=what)
        )
        await asyncio.gather(service.approvals.approve("ann", one.approval_id), other)
        await ended(service, talk)
        assert await shown(service, talk) == [("pay", "complete"), *DECIDED_JUST_NOW[what]]

    simulated({"pays": answers}, story, SOON, tools)


def test_a_message_to_a_suspended_talk_without_an_answer_is_answered_together_with_the_first(simulated: World) -> None:
    brains, tools = paying([])

    async def silent(turn: Turn) -> AsyncIterator[str]:
        if len(turn.messages) == 1:
            await turn.call_tool("pay", {"euros": 1})
        yield turn.text

    async def story(service: AsyncAgentService) -> list[str]:
        talk = await service.create_talk_session("ann", profile="silent")
        await service.add_message("ann", talk, "one")
        await asked(service)
        await until(lambda: service.roost.live_talks.known(talk).is_parked)  # type: ignore[union-attr]
        await service.add_message("ann", talk, "two", busy="interrupt")
        await ended(service, talk)
        assert await service.approvals.list("ann") == []
        return [content for content, _ in await shown(service, talk)]

    assert simulated({"silent": silent, **brains}, story, SOON, tools) == ["one", "two", "one\ntwo"]


@pytest.mark.parametrize("seed", range(5))
def test_a_talk_hears_a_decision_during_its_suspension_and_outlasts_a_crash(tmp_path: Path, seed: int) -> None:
    acted: list[str] = []
    brains, tools = paying(acted)
    simulation = Simulation(tmp_path, seed)

    async def story(service: AsyncAgentService) -> str:
        talk = await service.create_talk_session("ann", profile="pays")
        await service.add_message("ann", talk, "pay")
        [one] = await asked(service)
        clock = service.roost.context.host.clock
        latest = clock.monotonic() + 0.03 + seed * 0.003
        await until(lambda: clock.monotonic() >= latest)
        await service.approvals.approve("ann", one.approval_id)
        return talk

    talk = simulation.run(story(simulation.start(brains, SOON, tools)))
    if seed % 2:
        simulation.crash()
        simulation.start(brains, SOON, tools)
    messages = simulation.run(ended(simulation.service, talk))
    simulation.crash()
    assert messages[-1].content == "bill of 5: 5 paid"
    assert acted.count("look") == 1


@pytest.mark.parametrize(("word", "outcome"), [("done by hand", "done"), (None, "failed")])
def test_a_decision_during_the_suspension_is_recorded_and_replayed(
    world: World, word: str | None, outcome: str
) -> None:
    brains, tools = paying([])

    async def story(service: AsyncAgentService) -> None:
        task = await waiting_task(service)
        [one] = await service.approvals.list("ann")
        if word is None:
            await service.approvals.decline("ann", one.approval_id)
        else:
            await service.approvals.answer("ann", one.approval_id, word)
        await service.tasks.wait("ann", task)
        last, first = await service.runs.list("ann", agent="d")
        detail = await service.runs.get("ann", last.run_id)
        assert (detail.steps[-1].outcome, detail.steps[-1].run_id) == (outcome, last.run_id)
        for run in (last, first):
            replay = await service.runs.replay("ann", run.run_id)
            assert (replay.is_identical, replay.stopped_at) == (True, None), replay.diff

    world(brains, story, SOON, tools)
