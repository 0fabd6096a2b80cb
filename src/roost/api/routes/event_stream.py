"""Response with server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from time import monotonic

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from roost.api import subscriptions
from roost.api.limits.connections import CHUNKS, STREAM

Write = Callable[[bytes], Awaitable[None]]
PING = 15.0
"""Seconds between two comments, by which proxies and clients know that the stream is open."""


def event(kind: str, data: str, cursor: str | None = None) -> bytes:
    """Return one event; `data` is JSON, which has no line breaks."""
    place = "" if cursor is None else f"id: {cursor}\n"
    return f"{place}event: {kind}\ndata: {data}\n\n".encode()


class _Left(Exception):
    """The client has disconnected."""


class EventStream(Response):
    """Stream of encoded events; calls `over` at its end, also if the client disconnects before the first event."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[bytes], over: Callable[[], None], status_code: int = 200) -> None:
        super().__init__(status_code=status_code, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._events = events
        self._over = over

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[STREAM] = True
        try:
            async with asyncio.TaskGroup() as tasks:
                # A task of its own, which is resumed without the coroutines of all routers and middleware above it.
                write = scope.get("extensions", {}).get(CHUNKS) or partial(_send_part, send)
                sending = tasks.create_task(self._send_all(send, write), name="stream: events")
                leaving = tasks.create_task(_left(receive), name="stream: client")
                while not (await asyncio.wait([sending], timeout=PING))[0]:
                    await write(b": ping\n\n")
                leaving.cancel()
        except* _Left:
            pass  # resumed by the cursor of its last event
        finally:
            self._over()

    async def _send_all(self, send: Send, write: Write) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for data in self._events:
            start = monotonic()
            await write(data)
            if (waited := monotonic() - start) > subscriptions.DELAYED:
                await write(event("delayed", json.dumps({"seconds": round(waited, 1)})))
        await send({"type": "http.response.body", "body": b""})


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    raise _Left


async def _send_part(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})
