"""A program that is killed: a planner mails two coders, both work in steps, and both mail a tester.

    python driver_team.py DATABASE LEDGER

The ledger is outside of Roost and counts what was really done. The program runs until it is killed.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import roost

LIMITS = roost.Limits(drain=0.2, stop_patience=0.2)


async def planner(turn: roost.Turn) -> AsyncIterator[str]:
    for coder in ("coder-1", "coder-2"):
        await turn.mail(f"agent:{coder}", "please build", f"part of {coder}")
        await asyncio.sleep(0.03)
    yield "planned"


async def coder(turn: roost.Turn, ledger: Path) -> AsyncIterator[str]:
    for number in range(3):
        await asyncio.sleep(0.02)
        await turn.step(f"build {number}", _note, ledger, f"{turn.agent_id} {number}")
    await turn.mail("agent:tester", "please test", f"built by {turn.agent_id}")
    await asyncio.sleep(0.08)
    yield ""


async def tester(turn: roost.Turn) -> AsyncIterator[str]:
    turn.state["tested"] = [*turn.state.get("tested", []), turn.text]
    await asyncio.sleep(0.02)
    yield ""


def _note(ledger: Path, line: str) -> str:
    with ledger.open("a") as file:
        file.write(f"{line}\n")
    return line


def open_team(database: str, ledger: Path) -> roost.AgentService:
    async def coding(turn: roost.Turn) -> AsyncIterator[str]:
        async for text in coder(turn, ledger):
            yield text

    brains: dict[str, roost.Brain] = {"planner": planner, "coder": coding, "tester": tester}
    service = roost.open(database, brains=brains, limits=LIMITS)
    create = partial(service.agents.create, "ann", max_attempts=1_000)
    if not service.agents.list("ann"):
        create("tester", profile="tester")
        create("coder-1", profile="coder")
        create("coder-2", profile="coder")
        create("planner", profile="planner")
    service.tasks.send("ann", "planner", "go", key="once")
    return service


if __name__ == "__main__":
    with open_team(sys.argv[1], Path(sys.argv[2])):
        print("running", flush=True)
        threading.Event().wait()
