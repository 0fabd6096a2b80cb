"""Finished runs: lists of some of them, and what belongs to one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.stores.sql import run_history
from tests.runtime.conftest import World, becomes, ended


@roost.tool(approval=True)
async def pay(euros: int) -> str:
    return f"{euros} paid"


async def brain(turn: Turn) -> AsyncIterator[str]:
    """Does what the first word says; `worker` records a step, so that it leaves a record."""
    match turn.text.split()[0]:
        case "ask":
            yield await turn.ask("agent:worker", "twice one")
            yield await turn.ask("agent:worker", "twice two")
        case "pay":
            yield await turn.call_tool("pay", {"euros": 5})
        case "fail":
            raise ValueError("broken")
        case _:
            yield await turn.step("count", lambda: "counted")


def test_runs_are_listed_by_outcome_and_kind(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="brain", max_attempts=1)
        for text in ("one", "fail two", "three", "fail four"):
            await service.tasks.wait("ann", await service.tasks.send("ann", "d", text))
        await service.mail.send("ann", "agent:d", "news", "five")
        all_runs = await becomes(lambda: service.runs.list("ann"), lambda runs: len(runs) == 5)
        ids = [run.run_id for run in all_runs]
        assert [run.run_id for run in await service.runs.list("ann", outcome="failed")] == [ids[1], ids[3]]
        assert [run.run_id for run in await service.runs.list("ann", agent="d", outcome="done", kind="task")] == [
            ids[2],
            ids[4],
        ]
        assert [run.run_id for run in await service.runs.list("ann", kind="mail")] == ids[:1]
        assert [run.run_id for run in await service.runs.list("ann", outcome="failed", before=ids[1])] == [ids[3]]
        assert await service.runs.list("bob", outcome="failed") == []
        with pytest.raises(roost.Invalid, match="outcome"):
            await service.runs.list("ann", outcome="great")
        with pytest.raises(roost.Invalid, match="kind"):
            await service.runs.list("ann", kind="stone")

    world({"brain": brain}, story)


def test_a_run_has_the_messages_that_it_handled(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        talk = await service.create_talk_session("ann", profile="brain")
        await service.add_message("ann", talk, "one")
        await ended(service, talk)
        await service.agents.create("ann", "d", profile="brain", subscriptions=["bell"])
        await service.tasks.wait("ann", await service.tasks.send("ann", "d", "two"))
        await service.mail.send("ann", "agent:d", "news", "three")
        await service.events.publish("ann", "bell", {"rung": 2})
        runs = await becomes(lambda: service.runs.list("ann"), lambda runs: len(runs) == 4)
        assert await service.roost.context.store.write(run_history.set_users, 9) == 0, "each was recorded with its user"
        found = {run.kind: (await service.runs.get("ann", run.run_id)).inputs for run in runs}
        shown = {
            kind: [(one.sender, one.text, one.subject, one.data) for one in inputs] for kind, inputs in found.items()
        }
        assert shown == {
            "talk": [("user:ann", "one", "", None)],
            "task": [("user:ann", "two", "", None)],
            "mail": [("user:ann", "three", "news", None)],
            "event": [("user:ann", "bell", "", {"rung": 2})],
        }

    world({"brain": brain}, story)


def test_a_question_is_linked_to_the_run_that_answered_it(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "worker", profile="brain")
        await service.agents.create("ann", "d", profile="brain")
        await service.tasks.wait("ann", await service.tasks.send("ann", "d", "ask"))
        [run] = await service.runs.list("ann", agent="d")
        steps = (await service.runs.get("ann", run.run_id)).steps
        assert all(step.ended is not None and step.ended >= step.began for step in steps)
        asked = [step.asked_run_id for step in steps]
        answered = [one.run_id for one in await service.runs.list("ann", agent="worker")]
        assert asked == answered[::-1]
        texts = [(await service.runs.get("ann", name)).inputs[0].text for name in asked if name]
        assert texts == ["twice one", "twice two"]

    world({"brain": brain}, story)


def test_a_step_is_linked_to_the_approval_that_it_asked_for(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="brain")
        task = await service.tasks.send("ann", "d", "pay")
        [approval] = await becomes(lambda: service.approvals.list("ann"), bool)
        await service.approvals.approve("ann", approval.approval_id)
        await service.tasks.wait("ann", task)
        newest, *_ = await service.runs.list("ann", agent="d")
        [step] = (await service.runs.get("ann", newest.run_id)).steps
        assert (step.approval_id, step.result) == (approval.approval_id, "5 paid")

    world({"brain": brain}, story, tools=[pay])


def test_a_run_of_a_talk_that_was_stopped_has_its_receipt(world: World) -> None:
    async def held(turn: Turn) -> AsyncIterator[str]:
        yield "a word"
        await asyncio.Event().wait()

    async def story(service: AsyncAgentService) -> None:
        talk = await service.create_talk_session("ann", profile="held")
        await service.add_message("ann", talk, "go")
        await becomes(lambda: service.get_messages("ann", talk), lambda page: len(page.messages) == 2)
        receipt = await service.stop("ann", talk, wait=5)
        [run] = await becomes(lambda: service.runs.list("ann", talk=talk), bool)
        entry = await service.runs.get("ann", run.run_id)
        assert entry.stop is not None
        assert (entry.stop.requested, entry.stop.acknowledged) == (receipt.requested, receipt.acknowledged)
        assert entry.stop.quiesced is not None
        assert entry.first_output is not None
        assert run.outcome == "stopped"

    world({"held": held}, story)
