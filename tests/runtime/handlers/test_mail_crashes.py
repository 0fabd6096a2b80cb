"""A power cut at every commit: each mail, and each reply to it, is handled once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import roost
from roost import AsyncAgentService, Mail, Turn
from roost.testing import Crash, Simulation
from tests.runtime.conftest import QUICK, becomes
from tests.runtime.handlers.mailing import all_settled, rows


def crew(pause: float) -> dict[str, roost.Brain]:
    """A planner that mails two coders, which both mail a tester, which answers them and tells ann."""

    async def planner(turn: Turn) -> AsyncIterator[str]:
        for coder in ("c1", "c2"):
            await turn.mail(f"agent:{coder}", "write it", turn.text)
            await asyncio.sleep(pause)
        yield "planned"

    async def coder(turn: Turn) -> AsyncIterator[str]:
        if not turn.subject.startswith("Re:"):
            await turn.mail("agent:tester", "test it", f"by {turn.agent_id}")
            await asyncio.sleep(pause)
        yield ""

    async def tester(turn: Turn) -> AsyncIterator[str]:
        turn.state["tested"] = turn.state.get("tested", 0) + 1
        await turn.mail("user:ann", "tested", turn.text)
        await asyncio.sleep(pause)
        yield f"{turn.text} is number {turn.state['tested']}"

    return {"planner": planner, "coder": coder, "tester": tester}


CREW = {"planner": "planner", "c1": "coder", "c2": "coder", "tester": "tester"}


async def build(service: AsyncAgentService) -> None:
    """As a program that is started again would: what is there already is there already."""
    for agent_id, profile in CREW.items():
        with contextlib.suppress(roost.Conflict):
            await service.agents.create("ann", agent_id, profile=profile, max_concurrent_tasks=1)
    await service.tasks.send("ann", "planner", "the parser", key="once")
    await becomes(lambda: service.mail.inbox("ann"), lambda found: len(found) >= 2)
    await all_settled(service)


async def found(service: AsyncAgentService) -> list[list[str]]:
    boxes = []
    for box in ("user:ann", "agent:tester", "agent:c1", "agent:c2"):
        mails = await service.mail.inbox("ann", box)
        assert all(mail.processed or box == "user:ann" for mail in mails)
        boxes.append(sorted(f"{mail.subject}: {mail.body}" for mail in mails))
    assert await rows(service, "SELECT * FROM dead_letters") == []
    return boxes


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("pause", [0.0, 0.1], ids=["sent as the turn ends", "sent on the way"])
def test_a_crash_at_any_commit_loses_no_mail_and_doubles_none(tmp_path: Path, side: str, pause: float) -> None:
    crashes = 0
    for commit in range(1, 100):
        folder = tmp_path / str(commit)
        folder.mkdir()
        simulation = Simulation(folder, seed=commit)
        service = simulation.start(crew(pause), QUICK)
        assert simulation.database is not None
        setattr(simulation.database, f"crash_{side}", commit)
        try:
            simulation.run(build(service))
            simulation.crash()
            break
        except Crash:
            crashes += 1
        service = simulation.start(crew(pause), QUICK)
        simulation.run(build(service))
        mine, tester, *coders = simulation.run(found(service))
        simulation.crash()
        assert mine == ["tested: by c1", "tested: by c2"], commit
        assert tester == ["test it: by c1", "test it: by c2"], commit
        replies = [[body for body in box if body.startswith("Re: test it")] for box in coders]
        assert [len(box) for box in replies] == [1, 1], commit
        assert sorted(body[-1] for (body,) in replies) == ["1", "2"], commit
        assert [len(box) for box in coders] == [2, 2], commit
    assert crashes > 12, "the story has fewer commits than it should have"


def test_mail_being_dealt_with_when_the_program_dies_is_dealt_with_after_the_restart_once(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path, seed=1)
    begun: list[int] = []

    async def slow(turn: Turn) -> AsyncIterator[str]:
        begun.append(turn.attempt)
        if len(begun) == 1:
            await asyncio.sleep(60)
        yield "done"

    async def first(service: AsyncAgentService) -> None:
        await service.agents.create("ann", "d", profile="slow")
        await service.mail.send("ann", "agent:d", "hello", "words")
        await becomes(lambda: service.agents.get("ann", "d"), lambda agent: begun and agent.state == "active")
        assert await service.mail.inbox("ann") == []

    async def second(service: AsyncAgentService) -> list[Mail]:
        await becomes(lambda: service.mail.inbox("ann"))
        await all_settled(service)
        return await service.mail.inbox("ann")

    simulation.run(first(simulation.start({"slow": slow}, QUICK)))
    simulation.crash()
    (reply,) = simulation.run(second(simulation.start({"slow": slow}, QUICK)))
    simulation.crash()
    assert (reply.subject, reply.body) == ("Re: hello", "done")
    assert begun == [1, 1], "a crash counts nothing as tried"
