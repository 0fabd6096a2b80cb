"""A program that is killed: three agents meet, and speak one after the other.

    python driver_meeting.py DATABASE [AGENT]

That agent is stopped when they have begun. The program runs until it is killed.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator

import roost

LIMITS = roost.Limits(drain=0.2, stop_patience=0.2)
NAMES = ("a", "b", "c")
WORDS = 30


async def speaker(turn: roost.Turn) -> AsyncIterator[str]:
    turn.state["spoken"] = turn.state.get("spoken", 0) + 1
    await asyncio.sleep(0.01)
    yield f"{turn.agent_id} {turn.state['spoken']}"


def open_meeting(database: str) -> tuple[roost.AgentService, str]:
    service = roost.open(database, brains={"speaker": speaker}, limits=LIMITS)
    if not service.agents.list("ann"):
        service.agents.create_many("ann", NAMES, profile="speaker", max_attempts=1_000, retry_delay=0.01)
    others = [f"agent:{name}" for name in NAMES[1:]]
    meeting = service.meetings.call(
        "ann", "standup", required=others, floor="round_robin", max_words=WORDS, by="agent:a", key="once"
    )
    return service, meeting


if __name__ == "__main__":
    running, begun = open_meeting(sys.argv[1])
    with running:
        for agent in sys.argv[2:]:
            next(view for view in running.meetings.watch("ann", begun, seen_by="agent:a") if view.said)
            running.agents.stop("ann", agent)
        print("running", flush=True)
        threading.Event().wait()
