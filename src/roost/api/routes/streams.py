"""Server-sent events of a talk while it is written, resumed by `Last-Event-ID`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.types import Receive, Scope, Send

from roost.api.error_responses import reply_to
from roost.api.limits.concurrency import ConcurrencyLimit
from roost.errors import RoostError
from roost.protocol.talks import ChangeEvent
from roost.service import AsyncAgentService

PING = 15
GRACE = 10.0
"""Seconds after `send_timeout` until a stream ends, if its connection was not aborted."""


class Streams:
    """Open streams of this process, with a concurrency limit."""

    def __init__(self, service: AsyncAgentService, send_timeout: float = 20.0) -> None:
        self._service = service
        self._patience = send_timeout + GRACE
        self._places = ConcurrencyLimit("streams")

    async def open(
        self, user_id: str, talk_id: str, after: str | None, follow: bool, address: str = ""
    ) -> EventSourceResponse:
        """Return the response; raise errors of the first read before anything is sent."""
        self._places.take(user_id, address)
        try:
            await self._service.get_messages(user_id, talk_id, after=after, limit=1)
        except BaseException:
            self._places.leave(user_id, address)
            raise
        events = self._events(user_id, talk_id, after, follow)
        return _Counted(events, lambda: self._places.leave(user_id, address), self._patience)

    async def _events(
        self, user_id: str, talk_id: str, after: str | None, follow: bool
    ) -> AsyncIterator[ServerSentEvent]:
        stream = self._service.stream_messages(user_id, talk_id, after=after, follow=follow)
        try:
            async for change in stream:
                event = ChangeEvent.of(change)
                yield ServerSentEvent(event.model_dump_json(), event="change", id=change.cursor, sep="\n")
            yield ServerSentEvent("{}", event="end", sep="\n")
        except RoostError as error:
            # The status is already sent, so the error is the last event.
            yield ServerSentEvent(bytes(reply_to(error).body).decode(), event="error", sep="\n")


class _Counted(EventSourceResponse):
    """Stream that calls `over` at its end, also if the client disconnects before the first event."""

    def __init__(self, events: AsyncIterator[ServerSentEvent], over: Callable[[], None], patience: float) -> None:
        super().__init__(events, ping=PING, send_timeout=patience, sep="\n")
        self._over = over

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._over()
