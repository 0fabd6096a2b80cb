"""A10, A11: a power cut at any commit of a run with three tool calls; each tool acts once, and the answer is whole.

The ledger is outside of the store: what a tool did there is done, whatever becomes of the program.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Limits, Tool, Turn
from roost.core.journal.steps import idempotency_key
from roost.testing import Crash, Faults, Simulation, aeventually, insist
from tests.runtime.conftest import ended

LIMITS = Limits(attempts=1_000, drain=0.3, stop_patience=0.15, rest_after=0.1)
CONFIG: dict[str, Any] = {"max_attempts": 1_000, "retry_delay": 0.05, "idle_timeout": 0.5}
WHOLE = "asked one! two! three! thanks"


class Ledger:
    """Calls that tools have done, by the key of the call."""

    def __init__(self) -> None:
        self.done: dict[str, str] = {}
        self.asked = 0

    def act(self, key: str, word: str) -> str:
        assert key not in self.done, f"{word} was done twice"
        self.done[key] = f"{word}!"
        return self.done[key]

    def tools(self, *, check: bool, approval: bool = False) -> list[Tool]:
        @roost.tool(check=self.done.get if check else None, approval=approval)
        async def one(turn: Turn, word: str) -> str:
            return self.act(turn.step_key, word)

        @roost.tool(check=self.done.get if check else None)
        async def two(turn: Turn, word: str) -> str:
            await asyncio.sleep(0.01)
            said = self.act(turn.step_key, word)
            await asyncio.sleep(0.01)
            return said

        @roost.tool(check=self.done.get if check else None)
        def three(turn: Turn, word: str) -> str:
            return self.act(turn.step_key, word)

        return [one, two, three]


def brain(ledger: Ledger) -> roost.Brain:
    async def thinks(turn: Turn) -> AsyncIterator[str]:
        async with turn.model_call("model", {"prompt": turn.text}) as call:
            if call.recorded is None:
                ledger.asked += 1
                await asyncio.sleep(0.01)
                call.response = {"say": "asked", "n": ledger.asked}
        said = (call.recorded or call.response)["say"]
        first = await turn.call_tool("one", {"word": "one"})
        rest = await asyncio.gather(turn.call_tool("two", {"word": "two"}), turn.call_tool("three", {"word": "three"}))
        yield f"{said} {first} {' '.join(rest)} "
        yield await turn.step("thank", lambda: "thanks")

    return thinks


async def story(service: AsyncAgentService) -> None:
    """As a program that may be started again."""
    with contextlib.suppress(roost.Conflict):
        await insist(lambda: service.agents.create("ann", "d", profile="thinks", **CONFIG))
    await insist(lambda: service.tasks.send("ann", "d", "go", key="go"))
    while not (talks := await service.list_sessions("ann")):
        with contextlib.suppress(roost.Unavailable):
            await service.create_talk_session("ann")
    talk = talks[-1].talk_session_id
    await insist(lambda: service.add_message("ann", talk, "go", key="go"))


async def results(service: AsyncAgentService) -> tuple[str | None, str]:
    [task] = await service.tasks.list("ann")
    over = await service.tasks.wait("ann", task.task_id, 1_000)
    [talk] = await service.list_sessions("ann")
    return over.result, (await ended(service, talk.talk_session_id))[-1].content


async def decided(service: AsyncAgentService, ledger: Ledger, self_checking: bool, leisure: float = 0.0) -> bool:
    """Answer approvals as a person who reads the ledger; return True when all runs are over."""
    now = service.roost.context.host.clock.now()
    for asked in await service.approvals.list("ann"):
        if now - asked.created.timestamp() < leisure:
            continue
        if asked.kind == "call":
            await insist(partial(service.approvals.approve, "ann", asked.approval_id))
            continue
        assert asked.kind == ("step" if asked.tool == "thank" else "unknown")
        assert asked.tool == "thank" or not self_checking, "the tool itself knows"
        assert asked.run_id is not None
        key = next(one for one in await _keys(service, asked.run_id, asked.step))
        if asked.tool == "thank":
            await insist(partial(service.approvals.answer, "ann", asked.approval_id, '"thanks"'))
        elif key in ledger.done:
            await insist(partial(service.approvals.answer, "ann", asked.approval_id, ledger.done[key]))
        else:
            await insist(partial(service.approvals.approve, "ann", asked.approval_id))
    assert await service.dead_letters.list("ann") == []
    [task] = await service.tasks.list("ann")
    [talk] = await service.list_sessions("ann")
    return task.status == "done" and not talk.running


async def _keys(service: AsyncAgentService, run_id: str, step: int) -> list[str]:
    store = service.roost.context.store
    found: list[str] = []

    def look(tx: Any) -> list[tuple[str, str]]:
        return list(
            tx.read("SELECT envelope_id, key FROM steps WHERE run_id = :r AND step = :s", {"r": run_id, "s": step})
        )

    for envelope_id, key in await store.read(look):
        found.append(idempotency_key(envelope_id, key))

    return found


def crash_and_return(
    folder: Path,
    seed: int,
    *,
    check: bool,
    before: int | None = None,
    after: int | None = None,
    leisure: float | None = None,
) -> bool:
    ledger = Ledger()
    simulation = Simulation(folder, seed)
    brains, tools = {"thinks": brain(ledger)}, ledger.tools(check=check, approval=leisure is not None)

    def start() -> AsyncAgentService:
        return simulation.start(brains, LIMITS, tools)

    async def whole(service: AsyncAgentService) -> None:
        await story(service)
        if leisure is not None:
            await aeventually(lambda: decided(service, ledger, check, leisure), within=1_000)
        await results(service)

    service = start()
    assert simulation.database is not None
    simulation.database.crash_before, simulation.database.crash_after = before, after
    try:
        simulation.run(whole(service))
    except Crash:
        crashed = True
    else:
        crashed = False
        simulation.crash()
    service = start()

    async def to_the_end() -> tuple[str | None, str]:
        await story(service)
        await aeventually(lambda: decided(service, ledger, check, leisure or 0.0), within=1_000)
        return await results(service)

    assert simulation.run(to_the_end()) == (WHOLE, WHOLE)
    simulation.crash()
    assert Counter(ledger.done.values()) == {"one!": 2, "two!": 2, "three!": 2}, "once for the task, once for the talk"
    return crashed


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("side", ["before", "after"])
def test_a_crash_at_any_commit_has_each_tool_act_once(tmp_path: Path, side: str, check: bool) -> None:
    count = 0
    for commit in range(5, 200, 1 if check else 2):
        folder = tmp_path / str(commit)
        folder.mkdir()
        before, after = (commit, None) if side == "before" else (None, commit)
        if not crash_and_return(folder, commit, check=check, before=before, after=after):
            break
        count += 1
    assert count > (10 if check else 5), "the story has fewer commits than it should have"


@pytest.mark.parametrize("first", [5, *(pytest.param(n, marks=pytest.mark.soak) for n in (6, 7, 8))])
def test_a_crash_at_any_commit_of_suspended_runs_has_each_tool_act_once(tmp_path: Path, first: int) -> None:
    for commit in range(first, 200, 4):
        folder = tmp_path / str(commit)
        folder.mkdir()
        if not crash_and_return(folder, commit, check=True, after=commit, leisure=0.3):
            break
    assert commit > 20, "the story has fewer commits than it should have"
    with contextlib.closing(sqlite3.connect(tmp_path / str(commit) / "simulated.db")) as database:
        assert database.execute("SELECT count(*) FROM runs WHERE outcome = 'waiting'").fetchone() == (2,)


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(n, marks=pytest.mark.soak) for n in range(8, 200))])
def test_no_tool_acts_twice_whatever_goes_wrong(seed: int) -> None:
    ledger = Ledger()

    async def whole(service: AsyncAgentService) -> None:
        await story(service)
        await aeventually(lambda: decided(service, ledger, seed % 2 == 0, 0.2 * (seed % 3)), within=5_000)

    with Simulation(seed=seed, faults=Faults.some(seed)) as simulation:
        simulation.play(
            whole, {"thinks": brain(ledger)}, LIMITS, ledger.tools(check=seed % 2 == 0, approval=seed % 4 > 1)
        )
        assert simulation.run(results(simulation.service)) == (WHOLE, WHOLE)
        assert Counter(ledger.done.values()) == {"one!": 2, "two!": 2, "three!": 2}
