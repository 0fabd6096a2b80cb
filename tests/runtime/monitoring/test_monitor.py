"""A15: facts as one stream, the health of each agent, metrics, and one root id through all of it."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace

import roost
from roost import AsyncAgentService, Turn, telemetry
from roost.core.monitoring.facts import Fact, FactPage
from roost.core.monitoring.health import AgentStatus, Inspection
from roost.core.talks.messages import at
from roost.core.values.secrets import Redactor
from roost.hosts.simulated import SimulatedLoop
from roost.log import JsonFormatter
from roost.runtime.monitoring.fact_ring import FactRing
from roost.testing import Simulation
from tests.conftest import eventually
from tests.runtime.conftest import QUICK, World, becomes, ended, until
from tests.runtime.monitoring.tracing import KeepingTracer

FAST: dict[str, Any] = {"retry_delay": 0.01, "idle_timeout": 5.0, "max_attempts": 2}


async def teller(turn: Turn) -> AsyncIterator[str]:
    if "fail" in turn.text:
        raise RuntimeError("as asked")
    if turn.text.startswith("tell "):
        await turn.send(f"agent:{turn.text.removeprefix('tell ')}", "fail")
    if turn.text == "sleep":
        await turn.sleep(3600)
    if turn.text == "remember":
        turn.state["kept"] = True
    yield "done"


BRAINS = {"teller": teller}


async def done(service: AsyncAgentService, prompt: str, agent_id: str = "d") -> roost.Task:
    task_id = await service.tasks.send("ann", agent_id, prompt)
    return await service.tasks.wait("ann", task_id, timeout=20)


async def told(service: AsyncAgentService, last: str, user_id: str = "ann") -> list[Fact]:
    """All facts, once that one is among them."""

    async def look() -> FactPage:
        return await service.monitor.facts(user_id)

    page = await becomes(look, lambda page: any(fact.name == last for fact in page.facts))
    return list(page.facts)


def names(facts: list[Fact]) -> list[str]:
    return [str(fact.name) for fact in facts]


# --- facts ---------------------------------------------------------------------------------------------


def test_the_facts_of_a_task_come_in_order(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[Fact]:
        await service.agents.create("ann", "d", profile="teller", **FAST)
        await done(service, "hello")
        return await told(service, "TaskDone")

    facts = world(BRAINS, story)
    assert names(facts) == ["AgentCreated", "TaskSent", "RunStarted", "TaskStarted", "RunEnded", "TaskDone"]
    assert {fact.about for fact in facts} == {"ann/d"}
    assert {fact.user_id for fact in facts} == {"ann"}
    assert [fact.at for fact in facts] == sorted(fact.at for fact in facts)
    ran = facts[4].data
    assert (ran["kind"], ran["outcome"], ran["attempt"]) == ("task", "done", 1)


def test_a_task_that_fails_is_retried_and_then_a_dead_letter(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[Fact]:
        await service.agents.create("ann", "d", profile="teller", **FAST)
        await done(service, "fail")
        return await told(service, "LetterDied")

    facts = world(BRAINS, story)
    assert [name for name in names(facts) if name != "EventPublished"] == [
        "AgentCreated",
        "TaskSent",
        "RunStarted",
        "TaskStarted",
        "RunEnded",
        "TaskRetried",
        "RunStarted",
        "RunEnded",
        "TaskFailed",
        "AgentFailed",
        "LetterDied",
    ]
    assert {fact.data["fault"] for fact in facts if fact.name in ("TaskFailed", "AgentFailed")} == {"internal"}
    assert "as asked" not in repr(facts)  # what went wrong inside is in the log


def test_a_command_to_an_agent_is_one_fact_if_it_changes_something(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[Fact]:
        agents = service.agents
        await agents.create("ann", "d", profile="teller", start=False)
        for _ in range(2):
            await agents.start("ann", "d")
        for _ in range(2):
            await agents.pause("ann", "d")
        await agents.resume("ann", "d")
        await agents.sleep("ann", "d", 3600)
        for _ in range(2):
            await agents.wake("ann", "d")
        await agents.stop("ann", "d")
        await agents.delete("ann", "d")
        return await told(service, "AgentDeleted")

    assert names(world(BRAINS, story)) == [
        "AgentCreated",
        "AgentStarted",
        "AgentPaused",
        "AgentResumed",
        "AgentSlept",
        "AgentWoke",
        "AgentStopped",
        "AgentDeleted",
    ]


def test_a_refused_call_is_no_fact(world: World) -> None:
    async def story(service: AsyncAgentService) -> FactPage:
        await service.agents.create("ann", "d", profile="teller")
        with pytest.raises(roost.Conflict):
            await service.agents.create("ann", "d", profile="teller")
        with pytest.raises(roost.NotFound):
            await service.agents.stop("bob", "d")
        return await service.monitor.facts("ann")

    assert names(list(world(BRAINS, story).facts)) == ["AgentCreated"]


def test_sleep_and_wake_by_mail_are_facts(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[Fact]:
        await service.agents.create("ann", "d", profile="teller", **FAST)
        await done(service, "sleep")
        await becomes(lambda: service.agents.get("ann", "d"), lambda agent: agent.state == "sleeping")
        await service.mail.send("ann", "agent:d", "Hello", "world")
        return await told(service, "MailProcessed")

    facts = world(BRAINS, story)
    kept = [name for name in names(facts) if name.startswith(("Agent", "Mail"))]
    assert kept[:4] == ["AgentCreated", "AgentSlept", "MailSent", "AgentWoke"]
    assert set(kept[4:]) == {"MailProcessed", "MailSent"}  # it answers
    [woke] = [fact for fact in facts if fact.name == "AgentWoke"]
    assert "mail" in woke.data["reason"]


def test_events_schedules_and_cancelled_tasks_are_facts(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[Fact]:
        await service.agents.create("ann", "d", profile="teller", start=False)
        await service.events.publish("ann", "news", optional=True)
        task = await service.tasks.send("ann", "d", "hello")
        cancelled = await service.tasks.cancel("ann", task)
        await until(lambda: at(service.roost.context.host.clock.now()) > (cancelled.ended or cancelled.created))
        await service.tasks.cancel("ann", task)
        await service.schedules.create("ann", "d", "tick", at=datetime(2020, 1, 1, tzinfo=UTC))
        return await told(service, "ScheduleTicked")

    facts = world(BRAINS, story)
    assert names(facts)[:6] == [
        "AgentCreated",
        "EventPublished",
        "TaskSent",
        "TaskCancelled",
        "ScheduleTicked",
        "TaskSent",
    ]
    assert facts[4].data["task_id"] == facts[5].data["task_id"]


def test_runs_of_a_talk_are_facts_for_its_owner(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[Fact], str, FactPage]:
        talk = await service.create_talk_session("ann", profile="teller")
        await service.add_message("ann", talk, "hello")
        await ended(service, talk)
        return await told(service, "RunEnded"), talk, await service.monitor.facts("bob")

    facts, talk, others = world(BRAINS, story)
    assert [(fact.name, fact.about, fact.data["kind"]) for fact in facts] == [
        ("RunStarted", talk, "talk"),
        ("RunEnded", talk, "talk"),
    ]
    assert facts[0].root == facts[1].root != ""
    assert others.facts == ()


def test_a_user_sees_no_facts_of_another_user(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[Fact], list[Fact], Any]:
        for user in ("ann", "bob", "ann/d"):
            await service.agents.create(user, "d", profile="teller")
        ours = await told(service, "AgentCreated")
        return ours, await told(service, "AgentCreated", "bob"), await service.monitor.states("bob")

    ann, bob, states = world(BRAINS, story)
    assert [fact.about for fact in ann] == ["ann/d"]
    assert [fact.about for fact in bob] == ["bob/d"]
    assert list(states) == ["d"]


def test_a_message_of_a_user_is_a_fact_for_that_user_only(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[list[Fact]]:
        await service.mail.send("ann", "user:ann", "Note", "to myself")
        await service.events.publish("ann", "news")
        return [list((await service.monitor.facts(user)).facts) for user in ("ann", "bob", "an")]

    ann, bob, other = world(BRAINS, story)
    assert [(fact.name, fact.user_id, fact.about) for fact in ann] == [
        ("MailSent", "ann", None),
        ("EventPublished", "ann", None),
        ("LetterDied", "ann", None),
    ]
    assert (bob, other) == ([], [])
    assert "Note" not in repr(ann)


def test_a_message_to_a_deleted_agent_is_a_dead_letter_fact(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path, seed=6)

    async def sender(turn: Turn) -> AsyncIterator[str]:
        await turn.send("agent:gone", "hello")
        await turn.mail("agent:gone", "Hello", "you")
        await service.agents.delete("ann", "gone")
        yield "done"

    async def story() -> tuple[list[Fact], list[roost.DeadLetter]]:
        async with service:
            await service.agents.create("ann", "d", profile="sender", **FAST)
            await service.agents.create("ann", "gone", profile="sender", start=False)
            await done(service, "go")
            return await told(service, "TaskDone"), await service.dead_letters.list("ann")

    service = simulation.start({"sender": sender}, QUICK)
    facts, letters = simulation.run(story())
    died = [fact.data["fault"] for fact in facts if fact.name == "LetterDied"]
    assert died == [letter.fault for letter in letters] == ["undeliverable"] * 2
    assert "MailSent" not in names(facts)


@pytest.mark.parametrize("others", [0, 1])
def test_an_envelope_refused_by_a_full_inbox_is_a_fact_and_counted(world: World, others: int) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[Fact], list[roost.DeadLetter], list[roost.Task], float]:
        hears: dict[str, Any] = {"profile": "teller", "subscriptions": ["e"], "start": False}
        await service.agents.create("ann", "full", inbox_limit=1, **hears)
        for number in range(others):
            await service.agents.create("ann", f"other{number}", **hears)
        await service.tasks.send("ann", "full", "first")
        await service.events.publish("ann", "e")
        await service.agents.broadcast("ann", "hello")
        await service.schedules.create("ann", "full", "tick", at=datetime(2020, 1, 1, tzinfo=UTC))
        facts = await told(service, "TaskFailed")
        failed = await service.tasks.list("ann", status="failed")
        numbers = await service.monitor.metrics()
        return facts, await service.dead_letters.list("ann"), failed, numbers["roost_dead_letters_total"].value

    facts, letters, [refused], counted = world(BRAINS, story)
    died = [fact for fact in facts if fact.name == "LetterDied"]
    reported = [(fact.data["letter_id"], fact.data["kind"], fact.data["fault"], fact.about) for fact in died]
    assert sorted(reported) == sorted(  # of one moment of the simulation, in any order
        (letter.letter_id, letter.kind, "full", "ann/full") for letter in letters
    )
    assert (len(letters), counted) == (3, 3)
    [failed] = [fact for fact in facts if fact.name == "TaskFailed"]
    assert (failed.data["task_id"], failed.data["reason"]) == (refused.task_id, refused.error)


def test_each_dead_letter_fact_has_the_id_of_its_letter(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path, seed=8)

    async def sender(turn: Turn) -> AsyncIterator[str]:
        await turn.send("agent:gone", "hello")
        await turn.publish("unheard")
        await service.agents.delete("ann", "gone")
        yield "done"

    async def story() -> tuple[list[Fact], list[roost.DeadLetter], str]:
        async with service:
            await service.agents.create("ann", "d", profile="sender", **FAST)
            await service.agents.create("ann", "gone", profile="sender", start=False)
            task = await done(service, "go")
            return await told(service, "LetterDied"), await service.dead_letters.list("ann"), task.task_id

    service = simulation.start({"sender": sender}, QUICK)
    facts, letters, task_id = simulation.run(story())
    died = [fact for fact in facts if fact.name == "LetterDied"]
    assert sorted((fact.data["letter_id"], fact.data["fault"]) for fact in died) == sorted(
        (letter.letter_id, letter.fault) for letter in letters
    )
    assert {letter.fault for letter in letters} == {"undeliverable", "untaken"}
    assert {fact.root for fact in died} == {task_id}


def test_plain_messages_are_counted_and_are_facts_only_when_they_fail(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[Fact], float]:
        await service.agents.create("ann", "d", profile="teller", **FAST)
        await service.agents.create("ann", "e", profile="teller", **FAST)
        await done(service, "tell e")
        facts = await told(service, "LetterDied")
        numbers = await service.monitor.metrics()
        return facts, numbers["roost_envelopes_posted_total"].values[("task",)]  # type: ignore[return-value]

    facts, posted = world(BRAINS, story)
    assert [fact.name for fact in facts if fact.about == "ann/e"] == [
        "AgentCreated",
        "RunEnded",
        "RunEnded",
        "AgentFailed",
        "EventPublished",
        "LetterDied",
    ]
    assert posted == 2


# --- the cursor ----------------------------------------------------------------------------------------


def test_a_cursor_continues_where_the_page_ended(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[str], FactPage]:
        page = await service.monitor.facts("ann")
        seen: list[str] = []
        for number in range(7):
            await service.agents.create("ann", f"a{number}", profile="teller")
            await service.agents.create("bob", f"b{number}", profile="teller")
        while (page := await service.monitor.facts("ann", after=page.cursor, limit=3)).facts:
            assert not page.gap
            seen += [str(fact.about) for fact in page.facts]
        return seen, page

    seen, last = world(BRAINS, story)
    assert seen == [f"ann/a{number}" for number in range(7)]
    assert (last.gap, last.more) == (False, False)


def test_each_fact_has_the_cursor_of_its_successor(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[str]:
        for number in range(4):
            await service.agents.create("ann", f"a{number}", profile="teller")
        _, second, *_ = (await service.monitor.facts("ann")).facts
        rest = await service.monitor.facts("ann", after=second.cursor)
        return [str(fact.about) for fact in rest.facts]

    assert world(BRAINS, story) == ["ann/a2", "ann/a3"]


def test_a_slow_reader_sees_a_gap(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[FactPage, list[str]]:
        start = (await service.monitor.facts("ann")).cursor
        for number in range(9):
            await service.agents.create("ann", f"a{number}", profile="teller")
        page = await service.monitor.facts("ann", after=start)
        followed = service.monitor.follow("ann", after=start)
        return page, [str((await anext(followed)).name) for _ in range(3)]

    page, followed = world(BRAINS, story, replace(QUICK, facts_kept=5))
    assert page.gap
    assert [fact.about for fact in page.facts] == [f"ann/a{number}" for number in range(4, 9)]
    assert followed == ["FactsMissed", "AgentCreated", "AgentCreated"]


def test_a_cursor_from_before_a_restart_sees_a_gap(world: World) -> None:
    async def before(service: AsyncAgentService) -> str:
        await service.agents.create("ann", "d", profile="teller")
        return (await service.monitor.facts("ann")).cursor

    async def after(service: AsyncAgentService) -> FactPage:
        await service.agents.stop("ann", "d")
        return await service.monitor.facts("ann", after=cursor)

    cursor = world(BRAINS, before)
    page = world(BRAINS, after)
    assert (page.gap, names(list(page.facts))) == (True, ["AgentStopped"])


@pytest.mark.parametrize("cursor", ["", "nonsense", "1", "a.b", "../x.1"])
def test_what_is_no_cursor_is_refused(tmp_path: Path, cursor: str) -> None:
    with roost.open(f"sqlite:///{tmp_path}/roost.db") as service, pytest.raises(roost.Invalid, match="the cursor"):
        service.monitor.facts("ann", after=cursor)


def test_a_follower_receives_new_facts_of_its_user_only(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[str]:
        await service.agents.create("ann", "before", profile="teller")
        stream = service.monitor.follow("ann")
        first = asyncio.ensure_future(anext(stream))
        await until(lambda: service.roost.context.facts._waiters)
        await service.agents.create("bob", "d", profile="teller")
        await service.agents.create("ann", "d", profile="teller")
        heard = [await first]
        await service.agents.stop("ann", "d")
        heard.append(await anext(stream))
        return names(heard)

    assert world(BRAINS, story) == ["AgentCreated", "AgentStopped"]


def test_following_ends_when_roost_closes(tmp_path: Path) -> None:
    heard: list[Fact] = []
    service = roost.open(f"sqlite:///{tmp_path}/roost.db", limits=QUICK)
    stream = service.monitor.follow("ann")
    reader = threading.Thread(target=lambda: heard.extend(stream))
    reader.start()
    eventually(lambda: service.roost.context.facts._waiters)
    service.agents.create("ann", "d")
    service.close()
    reader.join(10)
    assert not reader.is_alive()
    assert names(heard) == ["AgentCreated"]


# --- how agents are ------------------------------------------------------------------------------------


def test_states_say_how_each_agent_is(world: World) -> None:
    async def story(service: AsyncAgentService) -> dict[str, AgentStatus]:
        for agent_id in ("asleep", "failing", "idle", "stopped"):
            await service.agents.create("ann", agent_id, profile="teller", **FAST)
        await service.agents.sleep("ann", "asleep", wake_on=roost.event("news"))
        await service.agents.stop("ann", "stopped")
        for _ in range(2):
            await done(service, "fail", "failing")
        return await service.monitor.states("ann")

    states = world(BRAINS, story)
    assert {agent_id: str(state.health) for agent_id, state in states.items()} == {
        "asleep": "asleep",
        "failing": "failing",
        "idle": "idle",
        "stopped": "stopped",
    }
    assert states["asleep"].wake_events == ("news",)
    assert states["failing"].error_count == 4
    assert states["asleep"].heartbeat is states["stopped"].heartbeat is None


def test_an_agent_whose_loop_is_blocked_is_stuck_until_it_works_on_another_one(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path, seed=3)
    limits = replace(QUICK, silent_loop=1.0)

    async def thinker(turn: Turn) -> AsyncIterator[str]:
        await asyncio.sleep(20)
        yield f"done at try {turn.attempt}"

    async def beat_ago() -> float:
        beat = (await service.monitor.states("ann"))["d"].heartbeat
        assert beat is not None
        return simulation.clock.now() - beat.timestamp()

    async def story() -> tuple[list[Fact], str, str]:
        async with service:
            await service.agents.create("ann", "d", profile="thinker", **FAST)
            task = await service.tasks.send("ann", "d", "think")
            await told(service, "RunStarted")
            assert await beat_ago() < 0.5
            awake = service.roost.dispatcher.awake("ann/d")
            assert awake is not None
            assert isinstance(awake.loop, SimulatedLoop)
            awake.loop.freeze(60.0)
            await told(service, "AgentStuck")
            during = str((await service.monitor.states("ann"))["d"].health)
            facts = await told(service, "AgentUnstuck")
            after = str((await service.monitor.states("ann"))["d"].health)
            assert (await service.tasks.wait("ann", task, timeout=60)).result == "done at try 2"
            return facts, during, after

    service = simulation.start({"thinker": thinker}, limits)
    facts, during, after = simulation.run(story())
    assert (during, after) == ("stuck", "alive")
    assert [name for name in names(facts) if "tuck" in name] == ["AgentStuck", "AgentUnstuck"]  # once
    [stuck] = [fact for fact in facts if fact.name == "AgentStuck"]
    began = next(fact for fact in facts if fact.name == "RunStarted")
    assert (stuck.data["run_id"], stuck.root) == (began.data["run_id"], began.root)


def test_the_log_names_the_agent_and_the_run_that_blocks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    go_on = threading.Event()

    async def blocker(turn: Turn) -> AsyncIterator[str]:
        go_on.wait(20)
        yield turn.run_id

    limits = replace(QUICK, silent_loop=1.0)
    with roost.open(f"sqlite:///{tmp_path}/roost.db", brains={"blocker": blocker}, limits=limits) as service:
        service.agents.create("ann", "d", profile="blocker")
        facts = service.monitor.follow("ann")
        task = service.tasks.send("ann", "d", "block")
        run_id = next(fact for fact in facts if fact.name == "RunStarted").data["run_id"]
        stuck = next(fact for fact in facts if fact.name == "AgentStuck")
        eventually(lambda: service.health().abandoned == 1)
        go_on.set()
        assert service.tasks.wait("ann", task).result != run_id
    [line] = [record for record in caplog.records if record.name == "roost.watch" and record.levelno == logging.ERROR]
    assert (vars(line)["agent"], vars(line)["run"], vars(line)["root"]) == ("ann/d", run_id, task)
    assert stuck.data["run_id"] == run_id


def test_an_agent_that_only_waits_is_not_stuck(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path, seed=4)

    async def thinker(turn: Turn) -> AsyncIterator[str]:
        await asyncio.sleep(30)
        yield "done"

    async def story() -> list[Fact]:
        async with service:
            await service.agents.create("ann", "d", profile="thinker", **FAST)
            task = await service.tasks.send("ann", "d", "think")
            await service.tasks.wait("ann", task, timeout=60)
            return await told(service, "TaskDone")

    service = simulation.start({"thinker": thinker}, QUICK)
    assert "AgentStuck" not in names(simulation.run(story()))


def test_everything_about_one_agent_can_be_looked_at(world: World) -> None:
    async def slow(turn: Turn) -> AsyncIterator[str]:
        if turn.text == "slow":
            await asyncio.sleep(3600)
        turn.state["done"] = turn.text
        yield "done"

    async def story(service: AsyncAgentService) -> tuple[Inspection, str, str]:
        await service.agents.create("ann", "d", profile="slow", max_concurrent_tasks=1, **FAST)
        await service.schedules.create("ann", "d", "tick", every=3600)
        await done(service, "first")
        running = await service.tasks.send("ann", "d", "slow")
        waiting = await service.tasks.send("ann", "d", "waits")
        seen = await becomes(lambda: service.agents.inspect("ann", "d"), lambda seen: seen.running)
        with pytest.raises(roost.NotFound):
            await service.agents.inspect("bob", "d")
        return seen, running, waiting

    seen, running, waiting = world({"slow": slow}, story)
    [run] = seen.running
    assert (run.envelope_id, run.kind, seen.health) == (running, "task", "alive")
    assert dict(seen.waiting) == {waiting: 1}
    assert seen.turn_state == {"done": "first"}
    assert [name.partition(":")[0] for name, _ in seen.timers] == ["schedule"]
    assert seen.changes[-1].cause == "created"
    assert [(one.outcome, one.kind) for one in seen.runs] == [("done", "task")]


def test_agents_are_found_by_a_part_of_their_id_or_description(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[list[str]]:
        await service.agents.create("ann", "news_reader", description="Reads the Zürich papers, 100%")
        await service.agents.create("ann", "writer", description="Writes what the reader read")
        await service.agents.create("ann", "newsXreader", profile="guide")
        await service.agents.create("bob", "reader")
        looked = ["READER", "Zürich", "news_", "100%", "guide", "nobody"]
        return [[agent.agent_id for agent in await service.agents.find("ann", text)] for text in looked]

    assert world({}, story) == [
        ["newsXreader", "news_reader", "writer"],
        ["news_reader"],
        ["news_reader"],
        ["news_reader"],
        [],
        [],
    ]


def test_the_state_can_be_edited_while_a_turn_changes_it(world: World) -> None:
    gate: list[bool] = []

    async def keeper(turn: Turn) -> AsyncIterator[str]:
        turn.state["turn"] = turn.text
        if turn.text == "slow":
            await until(lambda: gate)
        yield str(sorted(turn.state))

    async def story(service: AsyncAgentService) -> tuple[Any, ...]:
        await service.agents.create("ann", "d", profile="keeper", **FAST)
        await done(service, "first")
        task = await service.tasks.send("ann", "d", "slow")
        await becomes(lambda: service.agents.inspect("ann", "d"), lambda seen: seen.running)
        await service.agents.set_state("ann", "d", {"edited": True})
        await becomes(lambda: service.agents.inspect("ann", "d"), lambda seen: "edited" in seen.turn_state)
        gate.append(True)
        await service.tasks.wait("ann", task, timeout=20)
        merged = (await service.agents.inspect("ann", "d")).turn_state
        return merged, (await done(service, "last")).result

    async def again(service: AsyncAgentService) -> Any:
        kept = (await service.agents.inspect("ann", "d")).turn_state
        await service.agents.set_state("ann", "d", {})
        return kept, (await done(service, "after")).result

    assert world({"keeper": keeper}, story) == ({"edited": True, "turn": "slow"}, "['edited', 'turn']")
    assert world({"keeper": keeper}, again) == ({"edited": True, "turn": "last"}, "['turn']")


@pytest.mark.parametrize("state", [None, [1], "text", {"a": float("nan")}, {"a": object()}, {"a": "x" * 200}])
def test_state_that_cannot_be_kept_is_refused(tmp_path: Path, state: Any) -> None:
    with roost.open(f"sqlite:///{tmp_path}/roost.db", limits=replace(QUICK, state_chars=100)) as service:
        service.agents.create("ann", "d")
        with pytest.raises(roost.Invalid):
            service.agents.set_state("ann", "d", state)
        with pytest.raises(roost.NotFound):
            service.agents.set_state("bob", "d", {})


# --- numbers -------------------------------------------------------------------------------------------


def test_what_was_done_is_counted(world: World) -> None:
    async def story(service: AsyncAgentService) -> dict[str, Any]:
        await service.agents.create("ann", "d", profile="teller", **FAST)
        await done(service, "hello")
        await done(service, "fail")
        talk = await service.create_talk_session("ann", profile="teller")
        await service.add_message("ann", talk, "hello")
        await ended(service, talk)
        found = await becomes(service.monitor.metrics, lambda numbers: numbers["roost_runs_total"].value == 4)
        return {name: dict(found[name].values) for name in found if found[name].kind != "histogram"} | {
            "seconds": found["roost_run_seconds"].value,
            "batches": found["roost_batch_size"].value,
        }

    counted = world(BRAINS, story)
    assert counted["roost_runs_total"] == {("task", "done"): 1, ("task", "failed"): 2, ("talk", "done"): 1}
    assert counted["roost_envelopes_settled_total"] == {("done",): 1, ("retry",): 1, ("dead",): 1}
    assert counted["roost_errors_total"] == {("internal",): 2}
    assert (counted["roost_dead_letters_total"][()], counted["seconds"]) == (1, 4)
    assert (counted["roost_awake_agents"][()], counted["roost_loops_in_use"][()]) == (1, 1)
    assert counted["batches"] > 0


def test_how_late_timers_are_is_measured(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path, seed=5)

    async def story() -> Any:
        async with service:
            await service.agents.create("ann", "d", profile="teller", **FAST)
            await service.agents.sleep("ann", "d", 5)
            await told(service, "AgentWoke")
            return (await service.monitor.metrics())["roost_timer_lateness_seconds"].values[()]

    service = simulation.start(BRAINS, QUICK)
    late = simulation.run(story())
    assert late.count == 1
    assert 0 <= late.total < 0.1


# --- one id from the first call to the last effect -----------------------------------------------------


def test_one_id_goes_from_the_first_call_to_the_last_effect(world: World, caplog: pytest.LogCaptureFixture) -> None:
    async def story(service: AsyncAgentService) -> tuple[str, list[Fact], Inspection]:
        await service.agents.create("ann", "d", profile="teller", **FAST)
        await service.agents.create("ann", "e", profile="teller", **FAST)
        task = await done(service, "tell e")
        facts = await told(service, "LetterDied")
        return task.task_id, facts, await service.agents.inspect("ann", "e")

    task_id, facts, seen = world(BRAINS, story)
    about = [fact for fact in facts if fact.name != "AgentCreated"]
    assert {fact.about for fact in about} == {"ann/d", "ann/e"}
    assert {fact.root for fact in about} == {task_id}
    assert {run.root for run in seen.runs} == {task_id}
    failed = [record for record in caplog.records if record.message == "a run has failed"]
    assert {vars(record)["root"] for record in failed} == {task_id}


def test_the_root_id_is_kept_through_events_and_urgent_mail(world: World) -> None:
    async def link(turn: Turn) -> AsyncIterator[str]:
        if turn.kind == "mail":
            await turn.publish("news")
        elif turn.text == "news":
            await turn.mail("user:ann", "Look", "at this", priority="urgent")
        yield ""

    async def story(service: AsyncAgentService) -> tuple[str, list[Fact], set[str]]:
        for agent_id, hears in (("a", []), ("b", ["news"]), ("c", ["urgent_mail"])):
            await service.agents.create("ann", agent_id, profile="link", subscriptions=hears, **FAST)
        mail_id = await service.mail.send("ann", "agent:a", "Begin", "now")
        seen = await becomes(lambda: service.agents.inspect("ann", "c"), lambda seen: seen.runs)
        return mail_id, await told(service, "EventPublished"), {run.root for run in seen.runs}

    mail_id, facts, roots = world({"link": link}, story)
    assert roots == {mail_id}
    assert {fact.root for fact in facts if fact.name != "AgentCreated"} == {mail_id}
    published = [(fact.data["event"], fact.about) for fact in facts if fact.name == "EventPublished"]
    assert published == [("news", "ann/a"), ("urgent_mail", "ann/b")]


def test_urgent_mail_to_an_agent_of_another_user_is_a_fact_for_both(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[list[tuple[str, str | None]]]:
        await service.agents.create("bob", "s", profile="teller", shared=True, start=False)
        await service.mail.send("ann", "agent:bob/s", "Look", "at this", priority="urgent")
        pages = [await service.monitor.facts(user) for user in ("ann", "bob")]
        return [[(fact.name, fact.about) for fact in page.facts if fact.name != "AgentCreated"] for page in pages]

    assert world(BRAINS, story) == [[("MailSent", None)], [("EventPublished", None)]]


@pytest.mark.parametrize("blocking", [False, True])
def test_what_a_brain_logs_has_the_id_too(world: World, blocking: bool) -> None:
    lines: list[dict[str, Any]] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.loads(JsonFormatter(Redactor(os.environ)).format(record)))

    def plain(turn: Turn) -> Iterator[str]:
        logging.getLogger("a.library").warning("thinking")
        yield "done"

    async def thinker(turn: Turn) -> AsyncIterator[str]:
        for word in plain(turn):
            yield word

    async def story(service: AsyncAgentService) -> list[str]:
        await service.agents.create("ann", "d", profile="thinker", **FAST)
        return [(await done(service, str(number))).task_id for number in range(2)]

    handler = Kept()
    logging.getLogger("a.library").addHandler(handler)
    try:
        tasks = world({"thinker": plain if blocking else thinker}, story)
    finally:
        logging.getLogger("a.library").removeHandler(handler)
    assert [line["root"] for line in lines] == tasks


def test_the_id_survives_a_restart_and_a_retry(world: World) -> None:
    async def before(service: AsyncAgentService) -> str:
        await service.agents.create("ann", "d", profile="teller", **FAST)
        await service.agents.create("ann", "e", profile="teller", start=False, **FAST)
        return (await done(service, "tell e")).task_id

    async def after(service: AsyncAgentService) -> set[str]:
        await service.agents.start("ann", "e")
        await told(service, "LetterDied")
        [letter] = await service.dead_letters.list("ann")
        await service.dead_letters.retry("ann", letter.letter_id)
        seen = await becomes(lambda: service.agents.inspect("ann", "e"), lambda seen: len(seen.runs) == 4)
        return {run.root for run in seen.runs}

    task_id = world(BRAINS, before)
    assert world(BRAINS, after) == {task_id}


def test_publishing_facts_is_cheap_without_followers(tmp_path: Path) -> None:
    """An append: no fact is made before someone reads it."""
    with roost.open(f"sqlite:///{tmp_path}/roost.db", limits=QUICK) as service:
        service.agents.create("ann", "d")
        monitor = service.roost.context.facts
        assert isinstance(monitor.log, FactRing)
        assert all(type(one) is tuple for one in monitor.log._incoming)
        assert monitor._waiters == []


# --- spans ---------------------------------------------------------------------------------------------


def test_each_run_is_a_span_with_how_it_ended(world: World) -> None:
    tracer = KeepingTracer()

    async def story(service: AsyncAgentService) -> str:
        service.roost.context.tracer = telemetry.spans(tracer)
        await service.agents.create("ann", "d", profile="teller", **{**FAST, "max_attempts": 1})
        task = await done(service, "hello")
        await done(service, "fail")
        talk = await service.create_talk_session("ann", profile="teller")
        await service.add_message("ann", talk, "hello")
        await ended(service, talk)
        return task.task_id

    task_id = world(BRAINS, story)
    spans = [span.attributes for span in tracer.spans]
    assert [(s["roost.kind"], s["roost.outcome"], s.get("roost.fault")) for s in spans] == [
        ("task", "done", None),
        ("task", "failed", "internal"),
        ("talk", "done", None),
    ]
    assert (spans[0]["roost.where"], spans[0]["roost.root"]) == ("ann/d", task_id)
    assert "as asked" not in repr(spans)


@pytest.mark.parametrize(
    ("environ", "traces"),
    [({}, False), ({"OTEL_SERVICE_NAME": "x"}, True), ({"OTEL_SERVICE_NAME": "x", "OTEL_SDK_DISABLED": "true"}, False)],
)
def test_there_are_no_spans_unless_they_are_configured(environ: dict[str, str], traces: bool) -> None:
    assert (telemetry.tracer(environ) is not None) is traces


def test_a_span_is_the_current_one_until_it_ends_and_records_no_exception() -> None:
    tracer = KeepingTracer()
    with pytest.raises(RuntimeError), telemetry.spans(tracer)("roost task", {"kind": "task"}) as found:
        current = trace.get_current_span()
        found["outcome"] = "failed"
        raise RuntimeError("a secret")
    [span] = tracer.spans
    assert current is span
    assert (span.name, span.attributes) == ("roost task", {"roost.kind": "task", "roost.outcome": "failed"})
    assert (span.has_ended, span.exceptions, span.states) == (True, [], [])


def test_spans_are_exported_to_opentelemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    tracer = KeepingTracer()
    monkeypatch.setattr(trace, "get_tracer", {"roost": tracer}.__getitem__)
    made = telemetry.tracer({"OTEL_SERVICE_NAME": "x"})
    assert made is not None
    with made("roost task", {}):
        pass
    assert [span.name for span in tracer.spans] == ["roost task"]


def test_agents_are_found_whatever_the_case_of_their_letters(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> list[list[str]]:
        await service.agents.create("ann", "d", description="Ärger und ÉTUDES")
        await service.agents.create("ann", "e", description="nothing of that kind")
        looked = ("ärger", "ÄRGER", "études", "Und", "ü")
        return [[agent.agent_id for agent in await service.agents.find("ann", text, limit=1)] for text in looked]

    assert world({}, scenario) == [["d"], ["d"], ["d"], ["d"], []]
