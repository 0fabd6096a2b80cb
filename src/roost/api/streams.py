"""Server-sent events: a talk as it is being written, resumed by `Last-Event-ID`."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.types import Receive, Scope, Send

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
        self._count(user_id)
        try:
            await self._service.get_messages(user_id, talk_id, after=after, limit=1)
        except BaseException:
            self._let_go(user_id)
            raise
        return _Counted(self._events(user_id, talk_id, after, follow), lambda: self._let_go(user_id))

    def _count(self, user_id: str) -> None:
        """Before anything is awaited: of many that come at once, none may pass on what the others have not counted."""
        if self._open[user_id] >= PER_USER or self._open.total() >= PER_PROCESS:
            raise LimitReached("too many streams are open: close some and try again")
        self._open[user_id] += 1

    def _let_go(self, user_id: str) -> None:
        self._open[user_id] -= 1
        self._open += Counter()  # forgets the users who have none

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
