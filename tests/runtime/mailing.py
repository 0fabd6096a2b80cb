"""What the tests of mail share: brains, and ways to wait and to look."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import roost
from roost import AsyncAgentService, Mail, Turn

T = TypeVar("T")
FAST: dict[str, Any] = {"retry_delay": 0.01, "idle_timeout": 5.0}
D = "agent:ann/d"


async def silent(turn: Turn) -> AsyncIterator[str]:
    turn.state["got"] = [*turn.state.get("got", []), turn.text]
    yield " \n"


async def answers(turn: Turn) -> AsyncIterator[str]:
    yield f"{turn.kind} {turn.subject!r} {turn.text!r} from {turn.sender}"


BRAINS: dict[str, roost.Brain] = {"silent": silent, "answers": answers}


async def so(ask: Callable[[], Awaitable[T]], enough: Callable[[T], object] = bool) -> T:
    """Ask again and again until the answer is enough; the worlds' clocks move meanwhile."""
    answer = await ask()
    for _ in range(2_000):
        if enough(answer):
            return answer
        await asyncio.sleep(0.005)
        answer = await ask()
    raise AssertionError(f"it has not become so: {answer}")


async def processed(service: AsyncAgentService, mail_id: str, user_id: str = "ann") -> Mail:
    return await so(lambda: service.mail.get(user_id, mail_id), lambda mail: mail.processed is not None)


async def at_rest(service: AsyncAgentService) -> None:
    """Wait until nothing waits for anyone and nobody works: what ends, and what comes of it, is one commit."""
    await so(lambda: rows(service, "SELECT envelope_id FROM inbox"), lambda waiting: not waiting)


async def rows(service: AsyncAgentService, sql: str) -> list[Any]:
    return await service.roost.shop.store.read(lambda tx: [tuple(row) for row in tx.read(sql)])
