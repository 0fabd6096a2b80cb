"""A program that is killed: a lead tells a crew, sends to one of them, and asks another, again and again.

    python driver_messages.py DATABASE

It runs until it is killed. What each of the crew has heard is in its state.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator

import roost

LIMITS = roost.Limits(drain=0.2, stop_patience=0.2)
CREW = ("w0", "w1", "w2")
PLANS = 4
PARTS = 3


async def lead(turn: roost.Turn) -> AsyncIterator[str]:
    for part in range(PARTS):
        await turn.broadcast(f"{turn.text}.{part} all", group="crew")
        await turn.send("agent:w0", f"{turn.text}.{part} one")
        await asyncio.sleep(0.06)  # long enough for some of it to leave on the way
    yield " ".join(await asyncio.gather(*(turn.ask(f"agent:{name}", f"{turn.text} done?") for name in CREW)))


async def crew(turn: roost.Turn) -> AsyncIterator[str]:
    if turn.text.endswith("?"):
        turn.state["asked"] = turn.state.get("asked", 0) + 1
    else:
        turn.state["heard"] = [*turn.state.get("heard", []), turn.text]
    await asyncio.sleep(0.005)
    yield f"{turn.agent_id} {turn.state.get('asked')}"


def open_crew(database: str) -> roost.AgentService:
    service = roost.open(database, brains={"lead": lead, "crew": crew}, limits=LIMITS)
    if not service.agents.list("ann"):
        service.agents.create_many("ann", CREW, profile="crew", max_attempts=1_000, groups=["crew"])
    if len(service.agents.list("ann")) == len(CREW):
        service.agents.create("ann", "lead", profile="lead", max_attempts=1_000)
    for number in range(PLANS):
        service.tasks.send("ann", "lead", f"plan {number}", key=f"plan {number}")
    return service


if __name__ == "__main__":
    with open_crew(sys.argv[1]):
        print("running", flush=True)
        threading.Event().wait()
