"""A tool that is always allowed runs without asking: for one owner, agent or profile, until that is revoked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import roost
from roost import AsyncAgentService, Limits, Turn
from roost.testing import Simulation
from tests.runtime.conftest import World, ended
from tests.runtime.journal.test_approvals import asked, paying


def test_always_allowed_calls_do_not_ask_until_that_is_revoked(world: World) -> None:
    brains, tools = paying([])

    async def story(service: AsyncAgentService) -> None:
        async def says(talk: str) -> str:
            return (await ended(service, talk))[-1].content

        approvals = service.approvals
        talk = await service.create_talk_session("ann", profile="pays")
        await service.add_message("ann", talk, "pay")
        [one] = await asked(service)
        allowed = await approvals.allow_always("ann", one.approval_id)
        assert (allowed.decision, await says(talk)) == ("allowed", "bill of 5: 5 paid")
        [permission] = await approvals.permissions("ann")
        assert (permission.tool, permission.agent_id, permission.profile) == ("pay", None, "pays")
        other = await service.create_talk_session("ann", profile="pays")  # another talk of the same profile
        await service.add_message("ann", other, "pay")
        assert await says(other) == "bill of 5: 5 paid"
        newest = (await approvals.list("ann", all=True))[0]
        assert (newest.talk_session_id, newest.decision, newest.decided) == (other, "allowed", newest.created)
        [run] = await service.runs.list("ann", talk=other)
        replay = await service.runs.replay("ann", run.run_id)
        assert replay.is_identical, replay.diff
        await service.agents.create("ann", "d", profile="pays")
        task = await service.tasks.send("ann", "d", "pay")
        bobs = await service.create_talk_session("bob", profile="pays")
        await service.add_message("bob", bobs, "pay")
        [of_agent] = await asked(service)
        assert of_agent.agent_id == "d", "an agent with this profile asks"
        await approvals.decline("ann", of_agent.approval_id)
        await service.tasks.wait("ann", task)
        await approvals.revoke("ann", "pay", profile="pays")
        await service.add_message("ann", other, "again")
        [again] = await asked(service)
        assert again.talk_session_id == other
        assert len(await approvals.list("bob")) == 1, "another owner is asked"
        assert await approvals.permissions("bob") == []
        for options in ({}, {"agent_id": "d", "profile": "pays"}):
            with pytest.raises(roost.Invalid, match="name one of them"):
                await approvals.revoke("ann", "pay", **options)

    world(brains, story, tools=tools)


def test_a_kill_after_the_decision_loses_neither_it_nor_the_permission(tmp_path: Path) -> None:
    acted: list[str] = []
    brains, tools = paying(acted)

    async def twice(turn: Turn) -> AsyncIterator[str]:
        yield await turn.call_tool("pay", {"euros": 5})
        yield await turn.call_tool("pay", {"euros": 6})

    simulation = Simulation(tmp_path, seed=3)
    service = simulation.start({"twice": twice, **brains}, Limits(), tools)

    async def decide() -> str:
        talk = await service.create_talk_session("ann", profile="twice")
        await service.add_message("ann", talk, "pay")
        [one] = await asked(service)
        await service.approvals.allow_always("ann", one.approval_id)
        return talk

    talk = simulation.run(decide())
    simulation.crash()
    service = simulation.start({"twice": twice, **brains}, Limits(), tools)
    assert simulation.run(ended(service, talk))[-1].content == "5 paid6 paid"
    decided = simulation.run(service.approvals.list("ann", all=True))
    assert [(one.arguments["euros"], one.decision) for one in decided] == [(6, "allowed"), (5, "allowed")]
    assert len(simulation.run(service.approvals.permissions("ann"))) == 1
    assert len(acted) == len(set(acted)) == 2
