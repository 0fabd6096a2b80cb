"""Server-sent events: a talk as it is being written, resumed by `Last-Event-ID`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.types import Receive, Scope, Send

from roost.api.faults import reply_to
from roost.api.places import Places
from roost.errors import RoostError
from roost.protocol.talks import ChangeEvent
from roost.service import AsyncAgentService

PING = 15
SEND_PATIENCE = 30.0
"""A reader that takes nothing for so long is let go; it can resume."""


class Streams:
    """All open streams of this process, counted."""

    def __init__(self, service: AsyncAgentService) -> None:
        self._service = service
        self._places = Places("streams")

    async def open(self, user_id: str, talk_id: str, after: str | None, follow: bool) -> EventSourceResponse:
        """Raises before anything is sent what would else end the stream at once."""
        self._places.take(user_id)
        try:
            await self._service.get_messages(user_id, talk_id, after=after, limit=1)
        except BaseException:
            self._places.leave(user_id)
            raise
        return _Counted(self._events(user_id, talk_id, after, follow), lambda: self._places.leave(user_id))

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
            # The status is long sent: the error goes out as the last event.
            yield ServerSentEvent(bytes(reply_to(error).body).decode(), event="error", sep="\n")


class _Counted(EventSourceResponse):
    """A stream that says when it is over, also if its reader left before the first event."""

    def __init__(self, events: AsyncIterator[ServerSentEvent], over: Callable[[], None]) -> None:
        super().__init__(events, ping=PING, send_timeout=SEND_PATIENCE, sep="\n")
        self._over = over

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._over()
