"""Server-sent events: reading them, and resuming after a broken connection."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from roost.client.http import TRIES, HttpClient, HttpResponse, encoded, error_in, sendable
from roost.core.talks import side_channels
from roost.core.talks.messages import Change, Message, Status
from roost.errors import Unavailable
from roost.protocol.talks import ChangeEvent

Load = Callable[[int], Awaitable[Message]]
"""Function that requests a message by its number."""


@dataclass(frozen=True, slots=True)
class SseEvent:
    kind: str
    data: str


async def lines(answer: HttpResponse) -> AsyncIterator[str]:
    """Yield the lines of a body as they arrive."""
    begun = b""
    async for piece in answer.pieces():
        *whole, begun = (begun + piece).split(b"\n")
        for line in whole:
            yield line.decode().removesuffix("\r")


async def events(answer: HttpResponse) -> AsyncIterator[SseEvent]:
    """Yield the events of a response as they arrive; ends with the connection."""
    kind, data = "message", list[str]()
    async for line in lines(answer):
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            kind = value
        elif field == "data":
            data.append(value)
        elif not field and not value and data:
            yield SseEvent(kind, "\n".join(data))
            kind, data = "message", []


async def changes(
    wire: HttpClient, user_id: str, path: str, load: Load, after: str | None, follow: bool
) -> AsyncGenerator[Change]:
    """Yield the changes of a talk; reconnect after a broken connection and resume after the last change."""
    cursor, texts, failures = after, dict[int, Message](), 0
    while True:
        try:
            async with aclosing(_connected(wire, user_id, path, load, cursor, follow, texts)) as stream:
                async for change in stream:
                    if change is None:
                        return
                    cursor, failures = change.cursor, 0
                    yield change
        except OSError as error:
            failures += 1
            if failures == TRIES:
                raise Unavailable(
                    f"the stream from {wire.url} was interrupted: check that the server runs, and try again"
                ) from error
            await wire.pause(failures)


async def _connected(
    wire: HttpClient, user_id: str, path: str, load: Load, cursor: str | None, follow: bool, texts: dict[int, Message]
) -> AsyncGenerator[Change | None]:
    """Yield the changes of one connection, and None at the regular end of the stream."""
    headers = {"Accept": "text/event-stream"}
    if cursor:
        headers["Last-Event-ID"] = sendable(cursor, "the cursor")
    answer = await wire.stream(path + encoded({"follow": follow or None}), user_id, headers)
    try:
        async for event in events(answer):
            if event.kind == "end":
                yield None
            elif event.kind == "error":
                raise error_in(500, event.data.encode())
            elif event.kind == "change":
                yield await _change(load, ChangeEvent.model_validate_json(event.data), texts)
    finally:
        answer.connection.close()
    raise ConnectionResetError("the stream ended without an end event")


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
