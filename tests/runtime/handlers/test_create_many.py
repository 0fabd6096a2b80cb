"""Many agents made by one call: all or none, and others write in between."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

import roost
from roost import AsyncAgentService
from roost.ports import Tx
from roost.runtime.handlers.agents import agents
from roost.stores.sql.agents import agents as statements
from tests.conftest import Open, eventually
from tests.runtime.conftest import QUICK, World


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "CREATED_PER_WRITE", 3)
    monkeypatch.setattr(agents, "MAX_CREATED", 50)


def names(count: int) -> list[str]:
    return [f"d{number:03}" for number in range(count)]


def test_agents_are_made_in_pieces(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    create, sizes = statements.create, []

    def counted(tx: Tx, user_id: str, agent_ids: Sequence[str], *rest: Any) -> None:
        sizes.append(len(agent_ids))
        create(tx, user_id, agent_ids, *rest)

    monkeypatch.setattr(statements, "create", counted)

    async def scenario(service: AsyncAgentService) -> list[str]:
        await service.agents.create_many("ann", names(10), start=False, description="one of many")
        found = await service.agents.list("ann", limit=100)
        assert {agent.config.description for agent in found} == {"one of many"}
        return [agent.agent_id for agent in found]

    assert world({}, scenario) == names(10)
    assert sizes == [3, 3, 3, 1]


@pytest.mark.parametrize("known", ["d000", "d005", "d009"])
def test_if_one_is_there_already_none_is_made(world: World, known: str) -> None:
    async def scenario(service: AsyncAgentService) -> list[str]:
        await service.agents.create("ann", known)
        with pytest.raises(roost.Conflict, match=f"there is an agent '{known}' already"):
            await service.agents.create_many("ann", names(10))
        return [agent.agent_id for agent in await service.agents.list("ann")]

    assert world({}, scenario) == [known]


@pytest.mark.parametrize("ids", [["d", "d"], [*names(10), "d000"]])
def test_one_that_is_named_twice_is_refused_and_none_is_made(world: World, ids: list[str]) -> None:
    async def scenario(service: AsyncAgentService) -> list[roost.Agent]:
        with pytest.raises(roost.Conflict, match="is named twice"):
            await service.agents.create_many("ann", ids)
        return await service.agents.list("ann")

    assert world({}, scenario) == []


def test_more_than_the_user_may_have_or_one_call_makes_are_refused(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> list[roost.Agent]:
        with pytest.raises(roost.LimitReached, match="you may have at most 9 agents"):
            await service.agents.create_many("ann", names(10))
        with pytest.raises(roost.LimitReached, match="50 agents can be created by one call, not 51"):
            await service.agents.create_many("ann", names(51))
        return await service.agents.list("ann")

    limits = roost.Limits(drain=QUICK.drain, stop_patience=QUICK.stop_patience, agents_per_user=9)
    assert world({}, scenario, limits) == []


def test_others_write_while_many_are_made(service: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "CREATED_PER_WRITE", 500)
    monkeypatch.setattr(agents, "MAX_CREATED", 100_000)
    opened, wrote = service(), 0
    making = threading.Thread(target=opened.agents.create_many, args=("ann", names(20_000)))
    making.start()
    eventually(lambda: len(opened.agents.list("ann", limit=1)) == 1)
    while making.is_alive():
        opened.create_talk_session("bob", profile="echo")
        wrote += 1
    making.join()
    assert wrote >= 5
    assert len(opened.agents.list("ann", limit=1_000)) == 1_000
