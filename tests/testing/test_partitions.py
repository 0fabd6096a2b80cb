"""The kit: agents can be cut off from each other for a while, and nothing is lost by that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from roost import AsyncAgentService, Turn
from roost.testing import all_invariants, simulated


async def tells(turn: Turn) -> AsyncIterator[str]:
    turn.state["heard"] = [*turn.state.get("heard", []), turn.text]
    if turn.text.startswith("tell "):
        await turn.send("agent:b", turn.text.removeprefix("tell "))
    yield "done"


async def made(service: AsyncAgentService) -> None:
    await service.agents.create_many("ann", ["a", "b", "c"])


async def told(service: AsyncAgentService, agent: str, what: str) -> None:
    await service.tasks.wait("ann", await service.tasks.send("ann", agent, f"tell {what}"))


async def heard(service: AsyncAgentService) -> list[str]:
    return list((await service.agents.inspect("ann", "b")).turn_state.get("heard", []))


@pytest.mark.parametrize("seed", range(5))
def test_what_is_sent_across_a_cut_comes_when_it_is_healed_and_in_order(seed: int) -> None:
    with simulated(tells, seed=seed) as simulation:
        service = simulation.service
        simulation.run(made(service))
        simulation.cut("agent:ann/a", "agent:ann/b")
        simulation.run(told(service, "c", "by c"))  # so that it is awake
        for what in ("one", "two"):
            simulation.run(told(service, "a", what))
        simulation.advance(60)
        assert simulation.run(heard(service)) == ["by c"]
        simulation.heal()
        simulation.advance(30)
        assert simulation.run(heard(service)) == ["by c", "one", "two"]
        all_invariants(simulation)


def test_a_question_across_a_cut_is_answered_late() -> None:
    async def asks(turn: Turn) -> AsyncIterator[str]:
        if turn.text != "ask":
            yield "here I am"
            return
        try:
            yield await turn.ask("agent:b", "are you there?", deadline=5)
        except Exception as error:
            yield type(error).__name__

    with simulated(asks) as simulation:
        service = simulation.service

        async def asked() -> str | None:
            return (await service.tasks.wait("ann", await service.tasks.send("ann", "a", "ask"))).result

        simulation.run(made(service))
        simulation.cut("agent:ann/a", "agent:ann/b")
        assert simulation.run(asked()) == "NoAnswer"
        simulation.heal()
        simulation.run(asyncio.sleep(30))
        assert simulation.run(asked()) == "here I am"


def test_one_way_and_names_that_are_not_whole() -> None:
    with simulated(tells) as simulation:
        simulation.run(made(simulation.service))
        simulation.cut("agent:ann/b", "agent:ann/a", both_ways=False)
        simulation.run(told(simulation.service, "a", "hello"))
        simulation.advance(15)
        assert simulation.run(heard(simulation.service)) == ["hello"]
        with pytest.raises(ValueError, match="must be a whole address"):
            simulation.cut("agent:a", "agent:ann/b")
