"""B3: a tool that needs approval waits for a person's decision, for days and across restarts if necessary."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import roost
from roost import AsyncAgentService, Limits, ToolFailed, Turn
from roost.core.journal.approvals import Approval
from roost.testing import Simulation
from tests.runtime.conftest import QUICK, World, becomes, ended, until

pytestmark = pytest.mark.order

DAY = 86_400.0


def paying(acted: list[str]) -> tuple[dict[str, roost.Brain], list[roost.Tool]]:
    """A brain that wants to pay, and the tool that does it once a person has said so."""

    @roost.tool(approval=True)
    async def pay(turn: Turn, euros: int) -> str:
        """Pay so much."""
        acted.append(turn.step_key)
        return f"{euros} paid"

    @roost.tool(repeatable=True)
    async def look() -> str:
        acted.append("look")
        return "bill of 5"

    async def pays(turn: Turn) -> AsyncIterator[str]:
        yield f"{await turn.call_tool('look', {})}: "
        try:
            yield await turn.call_tool("pay", {"euros": 5})
        except ToolFailed as error:
            yield f"not paid, {error}"

    return {"pays": pays}, [pay, look]


async def asked(service: AsyncAgentService, count: int = 1) -> list[Approval]:
    return await becomes(lambda: service.approvals.list("ann"), lambda found: len(found) == count)


async def begin(service: AsyncAgentService) -> tuple[str, str]:
    """A task and a talk, each of which comes to the same question."""
    await service.agents.create("ann", "d", profile="pays", task_expiry=DAY, max_attempts=1)
    task = await service.tasks.send("ann", "d", "pay")
    talk = await service.create_talk_session("ann", profile="pays")
    await service.add_message("ann", talk, "pay")
    await asked(service, 2)
    return task, talk


def test_a_run_continues_after_an_approval_three_days_and_two_restarts_later(tmp_path: Path) -> None:
    acted: list[str] = []
    brains, tools = paying(acted)
    simulation = Simulation(tmp_path, seed=3)
    limits = Limits(attempts=1, drain=0.3, stop_patience=0.15)
    service = simulation.start(brains, limits, tools)
    task, talk = simulation.run(begin(service))
    before = [one.approval_id for one in simulation.run(service.approvals.list("ann"))]
    assert simulation.run(service.agents.get("ann", "d")).state == "waiting"
    simulation.crash()  # the power is cut, and a day passes
    for restart in range(2):
        simulation.clock.advance(1.5 * DAY)
        service = simulation.start(brains, limits, tools)
        found = simulation.run(asked(service, 2))
        assert [one.approval_id for one in found] == before, "they are asked once"
        if restart == 0:
            simulation.run(service.close())
            simulation.crash()

    async def decide() -> tuple[roost.Task, list[roost.Message]]:
        for one in await service.approvals.list("ann"):
            await service.approvals.approve("ann", one.approval_id)
        return await service.tasks.wait("ann", task), await ended(service, talk)

    over, messages = simulation.run(decide())
    mails = simulation.run(service.mail.inbox("ann"))
    simulation.crash()
    assert (over.status, over.result) == ("done", "bill of 5: 5 paid")
    assert (messages[-1].status, messages[-1].content) == ("complete", "bill of 5: 5 paid")
    assert acted.count("look") == 2, "what is on record is not done again"
    assert len(set(acted) - {"look"}) == len(acted) - 2 == 2, "paid once for each"
    assert [(m.sender, m.subject) for m in mails] == [("agent:ann/d", "May I call pay?")]


def test_a_declined_call_reaches_the_brain_with_its_reason(world: World) -> None:
    acted: list[str] = []
    brains, tools = paying(acted)

    async def story(service: AsyncAgentService) -> str | None:
        task, talk = await begin(service)
        for one in await service.approvals.list("ann"):
            declined = await service.approvals.decline("ann", one.approval_id, reason="too dear")
            assert (declined.decision, declined.note) == ("declined", "too dear")
            with pytest.raises(roost.Conflict, match="was declined already"):
                await service.approvals.approve("ann", one.approval_id)
        assert await service.approvals.list("ann") == []
        assert len(await service.approvals.list("ann", all=True)) == 2
        assert "too dear" in (await ended(service, talk))[-1].content
        return (await service.tasks.wait("ann", task)).result

    assert world(brains, story, tools=tools) == "bill of 5: not paid, a person has declined pay: too dear"
    assert set(acted) == {"look"}


def test_approvals_of_stopped_interrupted_or_cancelled_runs_are_withdrawn(world: World) -> None:
    acted: list[str] = []
    brains, tools = paying(acted)

    async def story(service: AsyncAgentService) -> None:
        task, talk = await begin(service)
        old = {one.talk_session_id: one.approval_id for one in await service.approvals.list("ann")}
        assert (await service.stop("ann", talk, wait=5)).quiesced
        await service.tasks.cancel("ann", task)
        await becomes(lambda: service.approvals.list("ann"), lambda found: not found)
        with pytest.raises(roost.Conflict, match="no run waits for this approval any more"):
            await service.approvals.approve("ann", old[talk])
        await service.add_message("ann", talk, "pay after all")
        [void] = await asked(service)
        await service.add_message("ann", talk, "no, wait")  # interrupts, and asks anew
        look = partial(service.approvals.list, "ann")
        [new] = await becomes(look, lambda found: [one for one in found if one.approval_id != void.approval_id])
        await service.approvals.answer("ann", new.approval_id, "paid by hand")
        assert (await ended(service, talk))[-1].content == "bill of 5: paid by hand"

    world(brains, story, tools=tools)
    assert set(acted) == {"look"}


def test_only_the_owner_sees_and_decides_an_approval(simulated: World) -> None:
    acted: list[str] = []
    brains, tools = paying(acted)

    async def story(service: AsyncAgentService) -> None:
        await begin(service)
        approvals = service.approvals
        assert await approvals.list("bob", all=True) == []
        for one in await approvals.list("ann"):
            tries = (approvals.get, approvals.approve, approvals.decline, partial(approvals.answer, result="paid"))
            for attempt in tries:
                with pytest.raises(roost.NotFound, match="there is no approval"):
                    await attempt("bob", one.approval_id)
        assert len(await approvals.list("ann")) == 2

    simulated(brains, story, tools=tools)
    assert set(acted) == {"look"}


def test_an_owner_learns_no_ids_of_the_talk_in_which_a_shared_agent_asks_another_user(simulated: World) -> None:
    brains, tools = paying([])

    async def story(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "clerk", profile="pays", shared=True)
        for user in ("ann", "bob"):
            talk = await service.create_talk_session(user, agent="agent:ann/clerk")
            before = (await service.monitor.facts("ann")).cursor
            await service.add_message(user, talk, "pay")
            [one] = await asked(service)
            found = [one, await service.approvals.get("ann", one.approval_id)]
            found += [await service.approvals.approve("ann", one.approval_id) for _ in range(2)]
            found += (await service.approvals.list("ann", all=True))[:1]
            assert [one async for one in service.stream_messages(user, talk)]
            facts = (await service.monitor.facts("ann", after=before)).facts
            assert [fact.name for fact in facts if fact.name.startswith("Approval")] == [
                "ApprovalAsked",
                "ApprovalDecided",
            ]
            known = {(seen.agent_id, seen.talk_session_id, seen.run_id is not None) for seen in found}
            assert known == {("clerk", talk, True) if user == "ann" else ("clerk", None, False)}
            assert (talk in str((found, facts))) is (user == "ann")

    simulated(brains, story, tools=tools)


def test_closing_does_not_wait_for_a_person(tmp_path: Path) -> None:
    brains, tools = paying([])

    async def main() -> None:
        service = await roost.aopen(f"sqlite:///{tmp_path}/a.db", brains=brains, tools=tools, limits=Limits(drain=60.0))
        await begin(service)
        async with asyncio.timeout(20):
            await service.close()

    asyncio.run(main())
    with roost.open(f"sqlite:///{tmp_path}/a.db", brains=brains, tools=tools) as again:
        assert len(again.approvals.list("ann")) == 2, "both are still asked"


def test_closing_does_not_wait_for_an_approval_asked_meanwhile(tmp_path: Path) -> None:
    _, tools = paying([])

    async def thinks_first(turn: Turn) -> AsyncIterator[str]:
        await asyncio.sleep(1)
        yield await turn.call_tool("pay", {"euros": 5})

    simulation = Simulation(tmp_path)
    service = simulation.start({"pays": thinks_first}, Limits(drain=60.0), tools)

    async def story() -> float:
        await service.agents.create("ann", "d", profile="pays")
        await service.tasks.send("ann", "d", "pay")
        await service.add_message("ann", await service.create_talk_session("ann", profile="pays"), "pay")
        await asyncio.sleep(0.5)
        await service.close()
        return simulation.clock.monotonic()

    assert simulation.run(story()) < 5
    simulation.crash()
    again = simulation.start({"pays": thinks_first}, Limits(), tools)
    assert len(simulation.run(again.approvals.list("ann"))) == 2


def test_a_task_that_waits_leaves_the_agent_free_for_others(world: World) -> None:
    brains, tools = paying([])

    async def either(turn: Turn) -> AsyncIterator[str]:
        if turn.text == "quick":
            yield "quick"
            return
        yield await turn.call_tool("pay", {"euros": 1})

    async def story(service: AsyncAgentService) -> list[str | None]:
        await service.agents.create("ann", "d", profile="either")
        slow = await service.tasks.send("ann", "d", "slow")
        [one] = await asked(service)
        quick = await service.tasks.wait("ann", await service.tasks.send("ann", "d", "quick"))
        await service.approvals.approve("ann", one.approval_id)
        return [quick.result, (await service.tasks.wait("ann", slow)).result]

    assert world({"either": either, **brains}, story, tools=tools) == ["quick", "1 paid"]


def test_an_approval_is_a_fact_and_its_arguments_are_shown_without_secrets(world: World) -> None:
    brains, tools = paying([])

    async def shows(turn: Turn) -> AsyncIterator[str]:
        yield await turn.call_tool("tell", {"what": "sk-0123456789abcdef0123"})

    @roost.tool(approval=True)
    async def tell(what: str) -> str:
        return f"{len(what)} characters"

    async def story(service: AsyncAgentService) -> str:
        start = await service.monitor.facts("ann", limit=1)
        talk = await service.create_talk_session("ann", profile="shows")
        await service.add_message("ann", talk, "go")
        [one] = await asked(service)
        assert one.arguments == {"what": "•••"}
        await service.approvals.approve("ann", one.approval_id)
        answer = (await ended(service, talk))[-1].content
        told = [f for f in (await service.monitor.facts("ann", after=start.cursor)).facts if "Approval" in f.name]
        assert [(f.name, f.about, f.data["tool"]) for f in told] == [
            ("ApprovalAsked", talk, "tell"),
            ("ApprovalDecided", talk, "tell"),
        ]
        return answer

    assert world({"shows": shows, **brains}, story, tools=[*tools, tell]) == "23 characters"


def test_a_repeated_decision_is_no_new_fact(world: World) -> None:
    brains, tools = paying([])

    async def story(service: AsyncAgentService) -> list[str]:
        start = await service.monitor.facts("ann", limit=1)
        await begin(service)
        first, second = await asked(service, 2)
        for _ in range(3):
            await service.approvals.approve("ann", first.approval_id)
            await service.approvals.allow_always("ann", second.approval_id)
        found = (await service.monitor.facts("ann", after=start.cursor)).facts
        return sorted(str(fact.data["decision"]) for fact in found if fact.name == "ApprovalDecided")

    assert world(brains, story, tools=tools) == ["allowed", "approved"]


def test_decided_ones_go_with_the_journal_and_what_is_waited_for_stays(world: World) -> None:
    brains, tools = paying([])
    limits = replace(QUICK, keep_journals_days=1e-9)

    async def story(service: AsyncAgentService) -> None:
        await begin(service)
        waiting, decided = await service.approvals.list("ann")
        await service.approvals.approve("ann", decided.approval_id)
        await becomes(lambda: service.runs.list("ann"), bool)
        clock, start = service.roost.context.host.clock, service.roost.context.host.clock.now()
        await until(lambda: clock.now() > start + 0.005)
        removed = await service.roost.retention.sweep()
        assert (removed["approvals"], removed["steps"]) == (1, 2)
        assert await service.approvals.list("ann", all=True) == [waiting]
        [run] = await service.runs.list("ann")
        assert run.steps == 0
        if waiting.talk_session_id is not None:
            await service.delete("ann", waiting.talk_session_id)
        else:
            await service.agents.delete("ann", "d")
        assert await service.approvals.list("ann", all=True) == [], "gone with what it belongs to"

    world(brains, story, limits, tools)
