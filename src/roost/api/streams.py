"""Server-sent events: a talk as it is being written, resumed by `Last-Event-ID`."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

from sse_starlette import EventSourceResponse, ServerSentEvent

from roost.api.faults import reply_to
from roost.errors import LimitReached, RoostError
from roost.protocol.talks import ChangeEvent
from roost.service import AsyncAgentService

PER_USER = 32
PER_PROCESS = 512
PING = 15
SEND_PATIENCE = 30.0
"""A reader that takes nothing for so long is let go; it can resume."""


class Streams:
    """All open streams of this process, counted."""

    def __init__(self, service: AsyncAgentService) -> None:
        self._service = service
        self._open: Counter[str] = Counter()

    async def open(self, user_id: str, talk_id: str, after: str | None, follow: bool) -> EventSourceResponse:
        """Raises before anything is sent what would else end the stream at once."""
        if self._open[user_id] >= PER_USER or self._open.total() >= PER_PROCESS:
            raise LimitReached("too many streams are open: close some and try again")
        await self._service.get_messages(user_id, talk_id, after=after, limit=1)
        events = self._events(user_id, talk_id, after, follow)
        return EventSourceResponse(events, ping=PING, send_timeout=SEND_PATIENCE, sep="\n")

    async def _events(
        self, user_id: str, talk_id: str, after: str | None, follow: bool
    ) -> AsyncIterator[ServerSentEvent]:
        self._open[user_id] += 1
        stream = self._service.stream_messages(user_id, talk_id, after=after, follow=follow)
        try:
            async for change in stream:
                event = ChangeEvent.of(change)
                yield ServerSentEvent(event.model_dump_json(), event="change", id=change.cursor, sep="\n")
            yield ServerSentEvent("{}", event="end", sep="\n")
        except RoostError as error:
            # The status is long sent: the error goes out as the last event.
            yield ServerSentEvent(bytes(reply_to(error).body).decode(), event="error", sep="\n")
        finally:
            self._open[user_id] -= 1
            self._open += Counter()  # forgets the users who have none
