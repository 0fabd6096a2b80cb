"""Server-sent events: reading them, and going on after a broken connection where it broke."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace

from roost.client.http import TRIES, Answer, Wire, encoded, error_in, sendable
from roost.core import notes
from roost.core.messages import Change, Message, Status
from roost.errors import Unavailable
from roost.protocol.talks import ChangeEvent, PageReply


@dataclass(frozen=True, slots=True)
class Event:
    kind: str
    data: str


async def lines(answer: Answer) -> AsyncIterator[str]:
    """The lines of a body, as they come."""
    begun = b""
    async for piece in answer.pieces():
        *whole, begun = (begun + piece).split(b"\n")
        for line in whole:
            yield line.decode().removesuffix("\r")


async def events(answer: Answer) -> AsyncIterator[Event]:
    """The events of an answer, as they come; ends with the connection."""
    kind, data = "message", list[str]()
    async for line in lines(answer):
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            kind = value
        elif field == "data":
            data.append(value)
        elif not field and not value and data:
            yield Event(kind, "\n".join(data))
            kind, data = "message", []


async def changes(
    wire: Wire, user_id: str, path: str, after: str | None, follow: bool
) -> AsyncGenerator[Change]:  # fmt: skip
    """The changes of a talk; after a broken connection those that follow the last one that came."""
    cursor, texts, failures = after, dict[int, Message](), 0
    while True:
        try:
            async with aclosing(_connected(wire, user_id, path, cursor, follow, texts)) as stream:
                async for change in stream:
                    if change is None:
                        return
                    cursor, failures = change.cursor, 0
                    yield change
        except OSError as error:
            failures += 1
            if failures == TRIES:
                raise Unavailable(f"the stream from {wire.url} broke off: check that it runs, and try again") from error
            await wire.pause(failures)


async def _connected(
    wire: Wire, user_id: str, path: str, cursor: str | None, follow: bool, texts: dict[int, Message]
) -> AsyncGenerator[Change | None]:
    """What comes on one connection; None when all has come."""
    headers = {"Accept": "text/event-stream"}
    if cursor:
        headers["Last-Event-ID"] = sendable(cursor, "the cursor")
    answer = await wire.stream(path + "/stream" + encoded({"follow": follow or None}), user_id, headers)
    try:
        async for event in events(answer):
            if event.kind == "end":
                yield None
            elif event.kind == "error":
                raise error_in(500, event.data.encode())
            elif event.kind == "change":
                yield await _change(wire, user_id, path, ChangeEvent.model_validate_json(event.data), texts)
    finally:
        answer.connection.close()
    raise ConnectionResetError("the stream ended without its end")


async def _change(wire: Wire, user_id: str, path: str, event: ChangeEvent, texts: dict[int, Message]) -> Change:
    """The change with the whole text so far, which is not sent again and again."""
    seq = event.message.seq
    before = texts.pop(seq, None)
    read = (len(before.content), notes.length(before.notes)) if before else (0, 0)
    if not event.reset and read != (event.offset, event.noted):
        # Begun in the middle of a text, with somebody's cursor: what was before it is asked for.
        answer = await wire.ask("GET", path + "/messages", user_id, query={"before": seq + 1, "limit": 1})
        there = PageReply.model_validate(answer).messages[-1].message()
        before = replace(there, content=there.content[: event.offset], notes=notes.until(there.notes, event.noted))
    change = event.change(before)
    if change.message.status is Status.STREAMING:
        texts[seq] = change.message
    return change
