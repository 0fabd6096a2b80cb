"""A program that a turn kills: a poison task and a poison talk beside healthy ones that take a while.

    python driver_poison.py DATABASE

It ends by itself when nothing is left to do, and begins where it was when it is started again.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator

import roost

LIMITS = roost.Limits(drain=0.2, stop_patience=0.2, attempts=1)
HEALTHY = tuple(f"healthy {number}" for number in range(4))


async def works(turn: roost.Turn) -> AsyncIterator[str]:
    """`poison` ends the process while others are busy; all else takes longer than that."""
    if turn.text == "poison":
        await asyncio.sleep(0.15)
        os.kill(os.getpid(), signal.SIGKILL)
    await asyncio.sleep(0.3)
    yield f"did {turn.text}"


def open_all(database: str) -> roost.AgentService:
    service = roost.open(database, brains={"works": works}, limits=LIMITS)
    if not service.agents.list("ann"):
        service.agents.create("ann", "bad", profile="works", max_attempts=2, start=False)
        service.agents.create("ann", "good", profile="works", max_attempts=1, max_concurrent_tasks=2, start=False)
    for agent in ("bad", "good"):
        for text in (*HEALTHY, "poison") if agent == "bad" else HEALTHY:
            service.tasks.send("ann", agent, text, key=text, priority="high" if text == "poison" else "normal")
        service.agents.start("ann", agent)
    for text in ("poison", *HEALTHY)[len(service.list_sessions("ann")) :]:
        talk = service.create_talk_session("ann", profile="works")
        service.add_message("ann", talk, text, key=text)
    return service


def is_over(service: roost.AgentService) -> bool:
    talks = service.list_sessions("ann")
    return all(task.is_over for task in service.tasks.list("ann")) and not any(talk.running for talk in talks)


if __name__ == "__main__":
    with open_all(sys.argv[1]) as opened:
        while not is_over(opened):
            threading.Event().wait(0.05)
