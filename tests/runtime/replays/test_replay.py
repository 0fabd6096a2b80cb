"""A16: a finished run is replayed from its journal, offline, with the same result; differences are reported."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, ToolFailed, Turn, aopen
from roost.hosts.threads import ThreadHost
from roost.runtime.handlers.runs import AT_ONCE
from tests.runtime.conftest import QUICK, World, becomes, ended, until
from tests.servers import new_store


class Shop:
    """A brain whose answer depends on everything it is given, with tools outside that count."""

    def __init__(self) -> None:
        self.acted: list[str] = []
        self.greeting = "hello"
        self.model = 0

    def tools(self) -> list[roost.Tool]:
        @roost.tool
        async def price(sku: str) -> float:
            self.acted.append(f"price {sku}")
            if sku == "ghost":
                raise ValueError("no such thing")
            return float(len(self.acted))

        @roost.tool
        async def order(turn: Turn, sku: str) -> str:
            self.acted.append(f"order {sku}")
            return turn.step_key

        return [price, order]

    async def brain(self, turn: Turn) -> AsyncIterator[str]:
        turn.state["turns"] = turn.state.get("turns", 0) + 1
        yield f"{self.greeting} {turn.state['turns']} {turn.run_id} {len(turn.history)} {turn.text}: "
        async with turn.model_call("m", {"history": len(turn.history), "text": turn.text}) as call:
            if call.recorded is None:
                self.model += 1
                call.response = f"thought {self.model}"
        yield f"{call.recorded or call.response} "
        for sku in ("egg", "ghost"):
            try:
                yield f"{await turn.call_tool('price', {'sku': sku})} "
            except ToolFailed as error:
                yield f"({error}) "
        yield await turn.call_tool("order", {"sku": "egg"})
        if turn.agent_id is not None:
            yield " " + await turn.mail("user:ann", "news", "ordered") + " "
            yield await turn.remember("ordered an egg")
            yield json.dumps([m.text for m in await turn.recall("egg")])
            yield str(await turn.step("count", lambda: len(self.acted)))
            yield await turn.call_tool("mail.send", {"to": "user:ann", "subject": "more", "body": "x"})


async def runs_of(service: AsyncAgentService, shop: Shop) -> list[str]:
    """A talk of two turns, and a task; the ids of their runs."""
    talk = await service.create_talk_session("ann", profile="brain", instructions="be short")
    for text in ("one", "two"):
        await service.add_message("ann", talk, text)
        await ended(service, talk)
    await service.agents.create("ann", "d", profile="brain")
    for text in ("three", "four"):
        over = await service.tasks.wait("ann", await service.tasks.send("ann", "d", text))
        assert over.status == "done", over.error
    found = [*await service.runs.list("ann", talk=talk), *await service.runs.list("ann", agent="d")]
    assert [one.steps for one in found] == [4, 4, 6, 6]
    assert [one.run_id for one in await service.runs.list("ann")] == sorted((r.run_id for r in found), reverse=True)
    assert shop.acted
    return [one.run_id for one in found]


def test_a_replay_says_the_same_and_does_nothing(world: World) -> None:
    shop = Shop()

    async def story(service: AsyncAgentService) -> None:
        names = await runs_of(service, shop)
        acted, asked, mails = list(shop.acted), shop.model, len(await service.mail.inbox("ann"))
        replay = await service.runs.replay("ann", names[0])
        for name in names:
            entry = await service.runs.get("ann", name)
            replay = await service.runs.replay("ann", name)
            assert (replay.diff, replay.text, replay.is_identical) == ("", entry.text, True)
            assert replay.text.count(name) == 1, "the brain sees the same id"
        assert replay.sent == ("mail to user:ann: news", "mail to user:ann: more")
        assert replay.steps == (
            "model m",
            "tool price",
            "tool price",
            "tool order",
            "step count",
            "tool mail.send",
        )
        assert (shop.acted, shop.model, len(await service.mail.inbox("ann"))) == (acted, asked, mails)

    world({"brain": shop.brain}, story, tools=shop.tools())


def test_the_steps_of_a_run_can_be_looked_at(world: World) -> None:
    shop = Shop()

    async def story(service: AsyncAgentService) -> None:
        _, first, *_ = await runs_of(service, shop)
        entry = await service.runs.get("ann", first)
        assert [(s.number, s.kind, s.name, s.outcome) for s in entry.steps] == [
            (1, "model", "m", "done"),
            (2, "tool", "price", "done"),
            (3, "tool", "price", "failed"),
            (4, "tool", "order", "done"),
        ]
        assert entry.steps[0].request == {"history": 0, "text": "one"}
        assert entry.steps[0].result == "thought 1"
        assert entry.steps[3].key == entry.steps[3].result, "the key that the tool was given"
        assert entry.given["options"] == {"instructions": "be short"}
        assert entry.run.talk_session_id is not None
        with pytest.raises(roost.NotFound):
            await service.runs.get("bob", first)
        with pytest.raises(roost.NotFound):
            await service.runs.replay("bob", first)
        with pytest.raises(roost.NotFound):
            await service.runs.list("bob", talk=entry.run.talk_session_id)
        assert await service.runs.list("bob") == []

    world({"brain": shop.brain}, story, tools=shop.tools())


def test_a_replay_reports_differences(world: World) -> None:
    shop = Shop()

    async def story(service: AsyncAgentService) -> None:
        run, *_ = await runs_of(service, shop)
        acted = list(shop.acted)
        shop.greeting = "good day"
        other = await service.runs.replay("ann", run)
        assert not other.is_identical
        assert other.diff.splitlines()[:2] == ["--- recorded", "+++ replayed"]
        assert "+good day" in other.diff
        shop.greeting = "hello"
        stopped = await service.runs.replay("ann", run, until=2)
        assert (stopped.is_identical, stopped.stopped_at, stopped.steps) == (True, 2, ("model m", "tool price"))
        assert stopped.recorded_text.startswith(stopped.text)
        assert shop.acted == acted
        live = await service.runs.replay("ann", run, until=3, live=True)
        assert live.steps == ("model m", "tool price", "tool price", "tool order (live)")
        assert shop.acted == [*acted, "order egg"]
        assert not live.is_identical, "another key"
        for wrong in (-1, True, "x"):
            with pytest.raises(roost.Invalid):
                await service.runs.replay("ann", run, until=wrong)  # type: ignore[arg-type]

    world({"brain": shop.brain}, story, tools=shop.tools())


def test_a_brain_that_asks_for_something_else_is_stopped_there(world: World) -> None:
    question = ["first"]

    async def asks(turn: Turn) -> AsyncIterator[str]:
        async with turn.model_call("m", {"q": question[0]}) as call:
            call.response = "answer"
        yield "answer"

    async def story(service: AsyncAgentService) -> str:
        talk = await service.create_talk_session("ann", profile="asks")
        await service.add_message("ann", talk, "go")
        await ended(service, talk)
        [run] = await service.runs.list("ann", talk=talk)
        assert (await service.runs.replay("ann", run.run_id)).is_identical
        question[0] = "second"
        return (await service.runs.replay("ann", run.run_id)).diff

    assert world({"asks": asks}, story) == "step 1, model m, is not recorded with this request"


def test_a_run_that_failed_was_stopped_or_was_steered_can_be_replayed(world: World) -> None:
    async def moody(turn: Turn) -> AsyncIterator[str]:
        yield "well "
        if turn.text == "fail":
            raise roost.BrainFailed("no", kind="tool")
        while turn.text != "end":
            if turn.steered():
                yield f"heard {turn.messages[-1].content}"
                return
            await asyncio.sleep(0.01)

    async def story(service: AsyncAgentService) -> None:
        talk = await service.create_talk_session("ann", profile="moody", busy="steer")

        async def begun() -> None:
            await becomes(
                lambda: service.get_messages("ann", talk),
                lambda page: page.messages[-1].sender == "agent" and page.messages[-1].content == "well ",
            )

        await service.add_message("ann", talk, "fail")
        await ended(service, talk)
        await service.add_message("ann", talk, "wait")
        await begun()
        await service.stop("ann", talk, wait=5)
        await service.add_message("ann", talk, "go on")
        await begun()
        await service.add_message("ann", talk, "this")
        await ended(service, talk)
        steered, stopped, failed = await service.runs.list("ann", talk=talk)
        assert [(await service.runs.replay("ann", one.run_id)).diff for one in (steered, failed)] == ["", ""]
        limited = await service.runs.replay("ann", stopped.run_id, within=1.5)
        assert limited.diff == "the replay did not end within 1.5 seconds"
        assert limited.text == "well "

    world({"moody": moody}, story)


def test_a_task_that_was_tried_again_is_replayed_try_by_try(world: World) -> None:
    fails = [True]

    @roost.tool
    async def flaky() -> str:
        if fails.pop():
            fails.append(False)
            raise ValueError("not yet")
        fails.append(False)
        return "now"

    async def tries(turn: Turn) -> AsyncIterator[str]:
        yield f"{turn.attempt} {await turn.call_tool('flaky', {})}"

    async def story(service: AsyncAgentService) -> list[Any]:
        await service.agents.create("ann", "d", profile="tries", retry_delay=0.01)
        task = await service.tasks.wait("ann", await service.tasks.send("ann", "d", "go"))
        assert task.result == "2 now"
        return [
            (one.outcome, (await service.runs.replay("ann", one.run_id)).diff)
            for one in await service.runs.list("ann", agent="d")
        ]

    assert world({"tries": tries}, story, tools=[flaky]) == [("done", ""), ("failed", "")]


def test_a_suspended_run_is_replayed_up_to_its_suspension(world: World) -> None:
    ordered: list[str] = []

    @roost.tool(approval=True)
    async def order(sku: str) -> str:
        ordered.append(sku)
        return f"ordered {sku}"

    async def careful(turn: Turn) -> AsyncIterator[str]:
        yield "let me see, "
        yield await turn.call_tool("order", {"sku": turn.text})

    async def story(service: AsyncAgentService) -> list[tuple[str, str, str]]:
        await service.agents.create("ann", "d", profile="careful")
        task = await service.tasks.send("ann", "d", "tea")
        [asked] = await becomes(lambda: service.approvals.list("ann"), bool)
        [resting] = await becomes(lambda: service.runs.list("ann", agent="d"), bool)
        halfway = await service.runs.replay("ann", resting.run_id)
        assert (halfway.text, halfway.diff, halfway.stopped_at) == ("let me see, ", "", 0)
        await service.approvals.approve("ann", asked.approval_id)
        assert (await service.tasks.wait("ann", task)).result == "let me see, ordered tea"
        runs = await service.runs.list("ann", agent="d")
        replays = [await service.runs.replay("ann", run.run_id) for run in runs]
        live = await service.runs.replay("ann", runs[0].run_id, until=0, live=True)
        assert "order needs an approval, and a replay requests none" in str(live.error)
        assert ordered == ["tea"]
        return [(run.outcome, one.recorded_text, one.diff) for run, one in zip(runs, replays, strict=True)]

    assert world({"careful": careful}, story, replace(QUICK, rest_after=0.05), [order]) == [
        ("done", "let me see, ordered tea", ""),
        ("waiting", "let me see, ", ""),
    ]


def test_a_run_that_was_stopped_in_a_tool_is_replayed_as_far_as_it_came(world: World) -> None:
    inside: list[str] = []

    @roost.tool
    async def dig() -> str:
        inside.append("digging")
        await asyncio.sleep(100_000)
        return "never"

    async def digger(turn: Turn) -> AsyncIterator[str]:
        yield "digging: "
        yield await turn.call_tool("dig", {})

    async def story(service: AsyncAgentService) -> None:
        talk = await service.create_talk_session("ann", profile="digger")
        await service.add_message("ann", talk, "go")
        await until(lambda: inside)
        await service.stop("ann", talk, wait=5)
        [run] = await becomes(lambda: service.runs.list("ann", talk=talk), bool)
        replay = await service.runs.replay("ann", run.run_id)
        assert (run.outcome, replay.text, replay.diff, replay.stopped_at) == ("stopped", "digging: ", "", 0)
        assert inside == ["digging"]

    world({"digger": digger}, story, tools=[dig])


def test_an_abandoned_replay_ends_and_few_replays_run_at_once(world: World) -> None:
    again: list[str] = []

    async def endless(turn: Turn) -> AsyncIterator[str]:
        yield "on and on"
        again.append("begun")
        try:
            await asyncio.sleep(100_000)
        finally:
            again.append("ended")

    async def story(service: AsyncAgentService) -> None:
        talk = await service.create_talk_session("ann", profile="endless")
        await service.add_message("ann", talk, "go")
        await until(lambda: again)
        await service.stop("ann", talk)
        [run] = await becomes(lambda: service.runs.list("ann", talk=talk), bool)
        again.clear()
        waiting = [asyncio.create_task(service.runs.replay("ann", run.run_id, within=3600)) for _ in range(8)]
        await until(lambda: len(again) == 8)
        with pytest.raises(roost.LimitReached):
            await service.runs.replay("ann", run.run_id)
        for one in waiting:
            one.cancel()
        await until(lambda: again.count("ended") == 8)
        with pytest.raises(roost.Invalid, match="within"):
            await service.runs.replay("ann", run.run_id, within=1e9)

    world({"endless": endless}, story)


def test_a_replay_whose_brain_blocks_its_thread_ends_in_time_and_frees_its_slot(tmp_path: Path) -> None:
    blocks, released = threading.Event(), threading.Event()

    async def blocking(turn: Turn) -> AsyncIterator[str]:
        yield "hello"
        if blocks.is_set():
            released.wait(60)

    limits = replace(QUICK, silent_loop=0.3, blocked_loops=1)

    async def story() -> None:
        async with await aopen(new_store(tmp_path / "roost.db"), brains={"b": blocking}, limits=limits) as service:
            talk = await service.create_talk_session("ann", profile="b")
            await service.add_message("ann", talk, "go")
            await ended(service, talk)
            [run] = await service.runs.list("ann", talk=talk)
            blocks.set()
            try:
                for abandoned in (1, 2):
                    with pytest.raises(roost.Conflict, match=r"did not end within 0\.2 seconds.*blocks its thread"):
                        await service.runs.replay("ann", run.run_id, within=0.2)
                    assert (await service.monitor.metrics())["roost_abandoned_threads"].value == abandoned
                with pytest.raises(roost.LimitReached, match="blocked_loops = 1"):
                    await service.runs.replay("ann", run.run_id)
            finally:
                blocks.clear()
                released.set()
            await becomes(service.monitor.metrics, lambda found: found["roost_abandoned_threads"].value == 0)
            assert (await service.runs.replay("ann", run.run_id)).text == "hello"

    asyncio.run(story())


def test_a_replay_whose_thread_cannot_start_frees_its_slot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def brief(turn: Turn) -> AsyncIterator[str]:
        yield "hello"

    def fails(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    async def story() -> None:
        async with await aopen(new_store(tmp_path / "roost.db"), brains={"b": brief}) as service:
            talk = await service.create_talk_session("ann", profile="b")
            await service.add_message("ann", talk, "go")
            await ended(service, talk)
            [run] = await service.runs.list("ann", talk=talk)
            with monkeypatch.context() as patched:
                patched.setattr(ThreadHost, "start_loop", fails)
                for _ in range(AT_ONCE):
                    with pytest.raises(RuntimeError, match="new thread"):
                        await service.runs.replay("ann", run.run_id)
            assert (await service.runs.replay("ann", run.run_id)).text == "hello"

    asyncio.run(story())


def test_a_refusal_and_a_later_answer_of_the_same_agent_come_in_that_order_again(simulated: World) -> None:
    there: list[bool] = []

    async def asks(turn: Turn) -> AsyncIterator[str]:
        for deadline in (-1, 5, 5, 5):
            try:
                yield await turn.ask("agent:b", "you?", deadline=deadline) + " "
            except roost.RoostError as error:
                yield f"{type(error).__name__} "
            if deadline > 0:
                await until(lambda: there)

    async def answers(turn: Turn) -> AsyncIterator[str]:
        turn.state["asked"] = turn.state.get("asked", 0) + 1
        yield f"yes {turn.state['asked']}"

    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="asks")
        task = await service.tasks.send("ann", "d", "go")
        await becomes(lambda: service.agents.inspect("ann", "d"), lambda found: found.running)
        await asyncio.sleep(0.5)
        await service.agents.create("ann", "b", profile="answers")
        there.append(True)
        assert (await service.tasks.wait("ann", task)).result == "Invalid NotFound yes 1 yes 2 "
        [run] = await service.runs.list("ann", agent="d")
        assert (await service.runs.replay("ann", run.run_id)).diff == ""

    simulated({"asks": asks, "answers": answers}, story)


def test_what_was_refused_is_refused_in_a_replay_too(world: World) -> None:
    """Refused mail, requests, invitations and memories, beside accepted ones."""

    async def sociable(turn: Turn) -> AsyncIterator[str]:
        if turn.agent_id != "d":
            yield f"yes, {turn.text}" if turn.kind == "task" else ""
            return
        asked: list[Any] = [
            turn.mail("agent:nobody", "news", "…"),
            turn.mail("agent:b", "news", "…"),
            turn.ask("agent:nobody", "who?"),
            turn.send("agent:nobody", "psst"),
            turn.ask("agent:b", "you?"),
            turn.mail("user:ann", "news", "…"),
            turn.call_meeting("chat", required=["agent:nobody"]),
            turn.publish("some.thing", optional=True),
            turn.recall("", limit=0),
            turn.recall("nothing"),
            turn.remember(""),
            turn.forget(""),
            turn.call_tool("mail.send", {"to": "agent:nobody", "subject": "x", "body": "y"}),
        ]
        for found in await asyncio.gather(*asked, return_exceptions=True):
            yield f"{type(found).__name__}: {found}; "

    async def story(service: AsyncAgentService) -> None:
        await service.agents.create_many("ann", ["d", "b"], profile="sociable")
        over = await service.tasks.wait("ann", await service.tasks.send("ann", "d", "go"))
        assert over.result is not None
        assert over.result.count("NotFound: ") == 4
        assert over.result.count("Invalid: ") == 3
        [run] = await service.runs.list("ann", agent="d")
        mails = len(await service.mail.inbox("ann"))
        replay = await service.runs.replay("ann", run.run_id)
        assert (replay.diff, replay.text) == ("", over.result)
        assert replay.sent == ("mail to agent:b: news", "mail to user:ann: news", "event some.thing")
        assert len(await service.mail.inbox("ann")) == mails

    world({"sociable": sociable}, story)
