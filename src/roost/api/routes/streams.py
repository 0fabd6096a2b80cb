"""Server-sent events of a talk while it is written, and of subscriptions, resumed by `Last-Event-ID`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.types import Receive, Scope, Send

from roost.api.endpoints import Caller
from roost.api.error_responses import reply_to
from roost.api.limits.concurrency import ConcurrencyLimit
from roost.api.subscriptions import SubscribeParams, SubscriptionEvent, events
from roost.core.talks.messages import Change
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
        """Return the changes of a talk; raise errors of the first read before anything is sent."""

        async def first() -> AsyncIterator[ServerSentEvent]:
            await self._service.get_messages(user_id, talk_id, after=after, limit=1)
            return _changes(self._service.stream_messages(user_id, talk_id, after=after, follow=follow))

        return await self._response(user_id, address, first)

    async def follow(self, caller: Caller, params: SubscribeParams) -> EventSourceResponse:
        """Return the events of a subscription; raise errors of the first read before anything is sent."""

        async def first() -> AsyncIterator[ServerSentEvent]:
            return _subscribed(params.topic, await events(self._service, caller, params))

        return await self._response(caller.user, caller.address, first)

    async def _response(
        self, user_id: str, address: str, first: Callable[[], Awaitable[AsyncIterator[ServerSentEvent]]]
    ) -> EventSourceResponse:
        """Return the response with these events; it counts as open from the first read on."""
        self._places.take(user_id, address)
        try:
            sent = await first()
        except BaseException:
            self._places.leave(user_id, address)
            raise
        return _Counted(_ended(sent), lambda: self._places.leave(user_id, address), self._patience)


async def _subscribed(topic: str, found: AsyncIterator[SubscriptionEvent]) -> AsyncIterator[ServerSentEvent]:
    async for event in found:
        yield ServerSentEvent(json.dumps(event.content), event=topic, id=event.cursor, sep="\n")


async def _changes(stream: AsyncIterator[Change]) -> AsyncIterator[ServerSentEvent]:
    async for change in stream:
        yield ServerSentEvent(ChangeEvent.of(change).model_dump_json(), event="change", id=change.cursor, sep="\n")


async def _ended(sent: AsyncIterator[ServerSentEvent]) -> AsyncIterator[ServerSentEvent]:
    """Yield the events, and one for the end. The status is already sent, so an error is the last event."""
    try:
        async for event in sent:
            yield event
        yield ServerSentEvent("{}", event="end", sep="\n")
    except RoostError as error:
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
