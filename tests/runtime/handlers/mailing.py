"""Shared by the tests of mail: brains, and ways to wait and to read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import roost
from roost import AsyncAgentService, Mail, Turn
from tests.runtime.conftest import becomes

FAST: dict[str, Any] = {"retry_delay": 0.01, "idle_timeout": 5.0}
D = "agent:ann/d"


async def silent(turn: Turn) -> AsyncIterator[str]:
    turn.state["got"] = [*turn.state.get("got", []), turn.text]
    yield " \n"


async def answers(turn: Turn) -> AsyncIterator[str]:
    yield f"{turn.kind} {turn.subject!r} {turn.text!r} from {turn.sender}"


BRAINS: dict[str, roost.Brain] = {"silent": silent, "answers": answers}


async def processed(service: AsyncAgentService, mail_id: str, user_id: str = "ann") -> Mail:
    return await becomes(lambda: service.mail.get(user_id, mail_id), lambda mail: mail.processed is not None)


async def all_settled(service: AsyncAgentService) -> None:
    """Wait until the inbox is empty and nobody works: an end and its results are one commit."""
    await becomes(lambda: rows(service, "SELECT envelope_id FROM inbox"), lambda waiting: not waiting)


async def rows(service: AsyncAgentService, sql: str) -> list[Any]:
    return await service.roost.context.store.read(lambda tx: [tuple(row) for row in tx.read(sql)])
