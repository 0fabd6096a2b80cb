"""A planner with workers: it asks several at once, combines their answers, and continues without the late one."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import roost

TRIP = {"train": "09:12 from platform 4", "hotel": "two nights at the lake", "weather": "sunny, 21 degrees"}


async def worker(turn: roost.Turn) -> AsyncIterator[str]:
    """Answer every question with one fact; the weather worker is slow."""
    if turn.agent_id == "weather":
        await asyncio.sleep(0.5)
    yield TRIP[str(turn.agent_id)]


async def planner(turn: roost.Turn) -> AsyncIterator[str]:
    if turn.kind == "answer":  # a late answer
        turn.state["late"] = f"{turn.sender}: {turn.text}"
        return
    found = await asyncio.gather(*(ask(turn, name) for name in TRIP))  # the agent is `waiting` meanwhile
    for name, answer in zip(TRIP, found, strict=True):
        yield f"{name}: {answer}\n"
    told = await turn.broadcast(f"{turn.text} is planned", ids="h*")
    yield f"told {told} of it"


async def ask(turn: roost.Turn, name: str) -> str:
    try:
        return await turn.ask(f"agent:{name}", f"{turn.text}?", deadline=0.2 if name == "weather" else 10)
    except roost.NoAnswer as error:
        return f"({error})"


with (
    tempfile.TemporaryDirectory() as folder,
    roost.open(f"sqlite:///{Path(folder) / 'trip.db'}", brains={"planner": planner, "worker": worker}) as service,
):
    service.agents.create("ann", "planner", profile="planner")
    service.agents.create_many("ann", list(TRIP), profile="worker")

    task = service.tasks.send("ann", "planner", "a weekend in May")
    print(service.tasks.wait("ann", task, timeout=10).result)

    while not (late := service.agents.inspect("ann", "planner").turn_state):
        pass  # wait for the late answer of the weather worker
    print(late["late"])
