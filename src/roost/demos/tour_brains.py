"""Brains of the three agents of the tour: scripts that do on a small scale what agents do.

`turn.state["pace"]` is the number of seconds of each of their steps, so that people can follow.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from roost.core.agents import wake
from roost.demos import brains
from roost.errors import NoAnswer, ToolFailed
from roost.ports import Turn, tool

PLANNER, BUYER, WATCHER = "tour-planner", "tour-buyer", "tour-watcher"
"""Ids of the agents, which are also their profiles."""
LOST = "Where is the key of the shed?"
"""Query of the memory without which a task fails."""
ALARM = "tour.alarm"
"""Event that nobody takes."""


@tool(approval=True)
async def order(article: str, count: int, price: float) -> str:
    """Order an article. This order of the tour reaches nobody."""
    return f"ordered: {count} × {article} for {count * price:.2f}"


# --- the planner -------------------------------------------------------------------------------------


async def planner(turn: Turn) -> AsyncIterator[str]:
    """Plan with two others and mail the plan; chair the standup and the game, and sleep after them."""
    if turn.kind == "meeting":
        async for text in _chair(turn):
            yield text
    elif turn.kind == "task":
        yield await _plan(turn)
    elif turn.kind == "mail":
        if not await turn.meetings():
            await turn.sleep(wake_on=wake.mail("normal"))
        yield f"Noted for the next plan: {turn.text}"
    elif turn.kind == "talk":
        plan = await turn.recall("plan", limit=1)
        yield f"{plan[0].text}\n\nSend me mail to change it." if plan else "There is no plan yet."


async def _plan(turn: Turn) -> str:
    pace = turn.state.get("pace", 0)
    day = await turn.step("read the calendar", _calendar, pace)
    roof, stock = await asyncio.gather(*(_asked(turn, who) for who in (WATCHER, BUYER)))
    async with turn.model_call("script", {"prompt": f"Plan {day}.", "roof": roof, "stock": stock}) as call:
        if call.recorded is None:
            await asyncio.sleep(pace)
            call.response = {"text": f"Plan for {day}:\n- Roof: {roof}\n- Stock: {stock}\n- Meet at the standup."}
    plan = str((call.recorded or call.response)["text"])
    await turn.remember(plan, key="plan")
    await turn.mail(f"user:{turn.user_id}", "The plan of the day", f"{plan}\n\nReply to this mail to change it.")
    await turn.mail(f"agent:{BUYER}", "What we need", "Please order the seeds today.", priority="high")
    return plan


async def _calendar(pace: float) -> str:
    await asyncio.sleep(pace)
    return "a dry day"


async def _asked(turn: Turn, who: str) -> str:
    try:
        return await turn.ask(f"agent:{who}", "What is new?", deadline=20)
    except NoAnswer:
        return f"no answer from {who}"


async def _chair(turn: Turn) -> AsyncIterator[str]:
    """Host the game, or speak in the standup and close it. Then sleep until mail comes."""
    if _is_game(turn):
        async for text in brains.host(turn):
            yield text
    else:
        async for text in brains.reporter(turn):
            yield text
    if turn.meeting.view.is_over:
        await turn.sleep(wake_on=wake.mail("normal"))


# --- the buyer ---------------------------------------------------------------------------------------


async def buyer(turn: Turn) -> AsyncIterator[str]:
    """Order what a task asks for, after an approval; answer questions and mail meanwhile."""
    if turn.kind == "meeting":
        async for text in _takes_part(turn):
            yield text
    elif turn.kind == "task" and turn.sender.startswith("agent:"):
        await asyncio.sleep(turn.state.get("pace", 0))
        yield "seeds are missing; I wait for an approval"
    elif turn.kind == "task":
        yield await _ordered(turn)
    elif turn.kind == "mail":
        yield "The order waits for an approval."
    elif turn.kind == "talk":
        yield "I buy what is needed. Approve or decline my order, and I send you mail about it."


async def _ordered(turn: Turn) -> str:
    try:
        result = await turn.call_tool(order, {"article": "bags of seeds", "count": 12, "price": 2.5})
    except ToolFailed as error:
        result = f"not ordered: {error}"
    await turn.mail(f"user:{turn.user_id}", "The order of seeds", result)
    return result


# --- the watcher -------------------------------------------------------------------------------------


async def watcher(turn: Turn) -> AsyncIterator[str]:
    """Look at the garden each minute; a task in the shed fails until somebody says where its key is."""
    if turn.kind == "meeting":
        async for text in _takes_part(turn):
            yield text
    elif turn.kind == "task" and turn.sender.startswith("agent:"):
        await asyncio.sleep(turn.state.get("pace", 0))
        yield "the roof is dry"
    elif turn.kind == "task" and "shed" in turn.text:
        yield await _in_the_shed(turn)
    elif turn.kind == "task":
        yield await _looked(turn)
    elif turn.kind in ("mail", "talk"):
        yield f"I have looked {turn.state.get('looks', 0)} times, and look again each minute."


async def _looked(turn: Turn) -> str:
    looks = turn.state["looks"] = turn.state.get("looks", 0) + 1
    seen = await turn.step("read the thermometer", _degrees, turn.now.minute)
    await turn.remember(f"Round {looks}: {seen} °C", key="last round")
    if looks == 1:
        await turn.publish(ALARM, {"door": "open", "degrees": seen}, priority="high")
    return f"{seen} °C, nothing unusual"


async def _degrees(minute: int) -> int:
    return 15 + minute % 10


async def _in_the_shed(turn: Turn) -> str:
    found = await turn.recall(LOST, limit=20)
    known = next((memory.text for memory in found if "key" in memory.text and "shed" in memory.text), None)
    if known is None:
        raise LookupError("no memory says where the key of the shed is")
    return f"The shed is watered. {known}"


async def _takes_part(turn: Turn) -> AsyncIterator[str]:
    """Play the game, or report in the standup."""
    act = brains.player if _is_game(turn) else brains.reporter
    async for text in act(turn):
        yield text


def _is_game(turn: Turn) -> bool:
    call = turn.meeting.view.call
    return call is not None and call.game is not None
