"""Brains of the tests of a cluster."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

from roost.ports import Turn


async def until(opened: threading.Event) -> None:
    """Wait for a test, on another thread."""
    while not opened.is_set():  # noqa: ASYNC110 — an event of asyncio belongs to one loop
        await asyncio.sleep(0.005)


async def endless(turn: Turn) -> AsyncIterator[str]:
    """Write until it is stopped."""
    while True:
        yield "on "
        await asyncio.sleep(0.01)


async def silent(turn: Turn) -> AsyncIterator[str]:
    """Write nothing until it is stopped."""
    await asyncio.Event().wait()
    yield "never"


async def words(turn: Turn) -> AsyncIterator[str]:
    """Write 120 short words, slowly enough to be read meanwhile."""
    for number in range(120):
        yield f"w{number} "
        await asyncio.sleep(0.004)


async def echo(turn: Turn) -> AsyncIterator[str]:
    """Repeat all that is new."""
    yield "|".join(message.content for message in turn.messages) if turn.kind == "talk" else turn.text


async def failing(turn: Turn) -> AsyncIterator[str]:
    yield "so far"
    await asyncio.sleep(0.05)
    raise RuntimeError("broken")
