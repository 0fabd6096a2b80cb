"""Changes of a talk from its stream, resumed after a broken connection."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace

import httpx2

from roost.client.http import HttpClient, encoded, sendable
from roost.client.outages import error_in
from roost.core.talks import side_channels
from roost.core.talks.messages import Change, Message, Status
from roost.errors import LimitReached
from roost.protocol.talks import ChangeEvent

Load = Callable[[int], Awaitable[Message]]
"""Function that requests a message by its number."""


async def changes(
    wire: HttpClient, user_id: str, path: str, load: Load, after: str | None, follow: bool
) -> AsyncGenerator[Change]:
    """Yield the changes of a talk; reconnect after a broken connection and resume after the last change."""
    cursor, texts, outage = after, dict[int, Message](), wire.outage()
    while True:
        try:
            async with aclosing(_connected(wire, user_id, path, load, cursor, follow, texts)) as stream:
                async for change in stream:
                    if change is None:
                        return
                    cursor = change.cursor
                    outage.over()
                    yield change
        except httpx2.TransportError as error:
            if wire.is_final(error) or not await outage.pause():
                raise wire.unreachable(error) from error
        except LimitReached:
            # The server may still count the connection that broke.
            if cursor == after or not await outage.pause():
                raise


async def _connected(
    wire: HttpClient, user_id: str, path: str, load: Load, cursor: str | None, follow: bool, texts: dict[int, Message]
) -> AsyncGenerator[Change | None]:
    """Yield the changes of one connection, and None at the regular end of the stream."""
    headers = {"Last-Event-ID": sendable(cursor, "the cursor")} if cursor else {}
    async with aclosing(wire.events(path + encoded({"follow": follow or None}), user_id, headers)) as events:
        async for event in events:
            if event.event == "end":
                yield None
            elif event.event == "error":
                raise error_in(500, event.data.encode())
            elif event.event == "change":
                yield await _change(load, _parsed(wire, event.data), texts)
    raise httpx2.ReadError("the stream ended without an end event")


def _parsed(wire: HttpClient, data: str) -> ChangeEvent:
    try:
        return ChangeEvent.model_validate_json(data)
    except ValueError as error:
        raise wire.misread() from error


async def _change(load: Load, event: ChangeEvent, texts: dict[int, Message]) -> Change:
    """Return the change with the whole text so far, of which the server sends only the new part."""
    seq = event.message.seq
    before = texts.pop(seq, None)
    read = (len(before.content), side_channels.length(before.notes)) if before else (0, 0)
    if not event.reset and read != (event.offset, event.noted):
        there = await load(seq)  # the cursor lies inside of a text: request the part before it
        before = replace(
            there, content=there.content[: event.offset], notes=side_channels.until(there.notes, event.noted)
        )
    change = event.change(before)
    if change.message.status is Status.STREAMING:
        texts[seq] = change.message
    return change
