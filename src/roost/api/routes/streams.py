"""Server-sent events of a talk while it is written, and of subscriptions, resumed by `Last-Event-ID`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from roost.api.endpoints import Caller
from roost.api.error_responses import reply_to
from roost.api.limits.concurrency import ConcurrencyLimit
from roost.api.routes.event_stream import EventStream, event
from roost.api.subscriptions import CutOff, SubscribeParams, SubscriptionEvent, Subscriptions
from roost.core.limits.limits import Limits
from roost.errors import RoostError
from roost.service import AsyncAgentService

EventForm = Callable[[SubscriptionEvent, str], bytes]


class Streams:
    """Open streams of this process, with a concurrency limit."""

    def __init__(self, service: AsyncAgentService, subscriptions: Subscriptions, limits: Limits) -> None:
        self._service = service
        self._subscriptions = subscriptions
        self._places = ConcurrencyLimit("streams", limits)

    async def open(self, user_id: str, talk_id: str, after: str | None, follow: bool, address: str = "") -> EventStream:
        """Return the changes of a talk; raise errors of the first read before anything is sent."""

        async def first() -> AsyncIterator[bytes]:
            await self._service.get_messages(user_id, talk_id, after=after, limit=1)
            changes = self._subscriptions.talk if follow else self._subscriptions.run
            return _encoded(changes(user_id, talk_id, after), _change, "change")

        return await self._response(user_id, address, first)

    async def follow(self, caller: Caller, params: SubscribeParams) -> EventStream:
        """Return the events of a subscription; raise errors of the first read before anything is sent."""

        async def first() -> AsyncIterator[bytes]:
            return _encoded(await self._subscriptions.events(caller, params), _event, params.topic)

        return await self._response(caller.user, caller.address, first)

    async def _response(
        self, user_id: str, address: str, first: Callable[[], Awaitable[AsyncIterator[bytes]]]
    ) -> EventStream:
        """Return the response with these events; it counts as open from the first read on."""
        self._places.take(user_id, address)
        try:
            sent = await first()
        except BaseException:
            self._places.leave(user_id, address)
            raise
        return EventStream(sent, lambda: self._places.leave(user_id, address))


def _event(found: SubscriptionEvent, kind: str) -> bytes:
    return event(kind, found.content, found.cursor)


def _change(found: SubscriptionEvent, kind: str) -> bytes:
    """Return the event of a talk, which repeats its cursor in the data."""
    return event(kind, f'{found.content[:-1]},"cursor":"{found.cursor}"}}', found.cursor)


async def _encoded(found: AsyncIterator[SubscriptionEvent], form: EventForm, kind: str) -> AsyncIterator[bytes]:
    """Yield the events, and one for the end. The status is already sent, so an error is the last event.

    A stream that ends because Roost closes has no such event, so that its client resumes it after the next start.
    """
    try:
        async for one in found:
            yield one.encoded(form, kind)
        yield event("end", "{}")
    except CutOff:
        return
    except RoostError as error:
        yield event("error", bytes(reply_to(error).body).decode())
