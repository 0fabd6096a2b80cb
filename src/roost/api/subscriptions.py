"""Subscriptions: what changes in a talk, in a meeting, in one's mailbox, or in all that the monitor records."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from enum import StrEnum
from functools import partial
from typing import Protocol

from roost.api import long_texts
from roost.api.endpoints import Caller
from roost.api.shared_reads import SharedReads
from roost.core.monitoring.facts import Fact
from roost.core.talks.messages import Change, Sender, Status
from roost.core.values import checks
from roost.errors import Invalid
from roost.protocol.values import Request, shown
from roost.service import AsyncAgentService


class SubscriptionTopic(StrEnum):
    """Kinds of subscriptions."""

    TALK = "talk"
    MEETING = "meeting"
    AGENTS = "agents"
    MAIL = "mail"
    MONITOR = "monitor"


DELAYED = 5.0
"""Seconds that a client takes to accept an event until it is notified that it reads too slowly."""
SCOPES = {
    SubscriptionTopic.TALK: "talks:read",
    SubscriptionTopic.MEETING: "meetings:read",
    SubscriptionTopic.AGENTS: "monitor:read",
    SubscriptionTopic.MAIL: "mail:read",
    SubscriptionTopic.MONITOR: "monitor:read",
}
"""Scopes that tokens need."""


class SubscribeParams(Request):
    """Parameters of `subscribe`; `after` is the cursor of the last event that was received, on any connection."""

    topic: str
    subscription: str | None = None
    """Name of the subscription, chosen by the client."""
    after: str | None = None
    talk_session_id: str | None = None
    follow: bool = True
    """True if the subscription to a talk continues after the end of its run."""
    meeting_id: str | None = None
    seen_by: str | None = None
    agent_id: str | None = None


class UnsubscribeParams(Request):
    subscription: str


class SubscriptionEvent:
    """Event of a subscription; subscribing again `after` its cursor continues with the next one.

    `content` is JSON. Subscribers that share an event encode it once.
    """

    __slots__ = ("_encoded", "content", "cursor")

    def __init__(self, cursor: str, content: str) -> None:
        self.cursor = cursor
        self.content = content
        self._encoded: tuple[object, bytes] = (None, b"")

    def encoded(self, form: Callable[[SubscriptionEvent, str], bytes], name: str) -> bytes:
        """Return `form(self, name)`; the last result is kept, since most subscribers ask for the same."""
        key, data = self._encoded
        if key != (form, name):
            data = form(self, name)
            self._encoded = ((form, name), data)
        return data


class _Follower(Protocol):
    """Reader of a talk that continues after its last changes."""

    @property
    def cursor(self) -> str | None: ...

    @property
    def is_over(self) -> bool: ...

    async def read(self) -> Sequence[Change]: ...


class _Batch:
    """Events of a talk that were there at once. Readers of all of them continue with the same follower."""

    __slots__ = ("cursor", "events", "follower", "is_answer", "is_last")

    def __init__(self, changes: Sequence[Change], before: str | None, follower: _Follower) -> None:
        events, self.cursor = list[SubscriptionEvent](), before
        for change in changes:
            events += [SubscriptionEvent(*event) for event in long_texts.events(change, self.cursor)]
            self.cursor = change.cursor
        self.events: Sequence[SubscriptionEvent] = events
        self.follower = follower
        self.is_answer = bool(changes) and _is_answer(changes[-1])
        self.is_last = follower.is_over


class CutOff(Exception):
    """A subscription ends because Roost closes: it is resumed after the next start."""


class Subscriptions:
    """Events of all topics; subscribers of a talk that have read equally far share each read."""

    def __init__(self, service: AsyncAgentService) -> None:
        self._service = service
        self._reads = SharedReads[_Batch]()

    async def events(self, caller: Caller, params: SubscribeParams) -> AsyncIterator[SubscriptionEvent]:
        """Return the events of a subscription; errors of the first read are raised at once.

        They end with CutOff if Roost closes.
        """
        service = self._service
        topic = checks.choice(params.topic, "the topic", SubscriptionTopic)
        caller.require(SCOPES[topic])
        match topic:
            case SubscriptionTopic.TALK:
                talk_id = _needed(params.talk_session_id, "talkSessionId")
                await service.get_messages(caller.user, talk_id, after=params.after, limit=1)
                stream = self.talk if params.follow else self.run
                return stream(caller.user, talk_id, params.after)
            case SubscriptionTopic.MEETING:
                meeting_id = _needed(params.meeting_id, "meetingId")
                await service.meetings.view(caller.user, meeting_id, seen_by=params.seen_by, limit=1)
                return self._until_closed(_meeting(service, caller, meeting_id, params.seen_by, params.after))
            case SubscriptionTopic.AGENTS:
                return self._until_closed(
                    _facts(service.agents.follow(caller.user, params.agent_id, after=params.after))
                )
            case SubscriptionTopic.MAIL:
                page = await service.mail.arrivals(caller.user, after=params.after, limit=1)  # from now on
                after = page.cursor if params.after is None else params.after
                return self._until_closed(_mail(service, caller, after))
            case SubscriptionTopic.MONITOR:
                return self._until_closed(_facts(service.monitor.follow(caller.user, after=params.after)))

    async def talk(self, user: str, talk_id: str, after: str | None) -> AsyncIterator[SubscriptionEvent]:
        """Yield the newest messages of a talk, or the changes after a cursor; then each change."""
        batch = None
        while batch is None or not batch.is_last:
            batch = await self._next(user, talk_id, batch.cursor if batch else after, batch, follow=True)
            for event in batch.events:
                yield event
        self._check_open()

    async def run(self, user: str, talk_id: str, after: str | None) -> AsyncIterator[SubscriptionEvent]:
        """Yield the same until the run of the talk ends."""
        batch, is_answered = None, False
        while batch is None or not batch.is_last:
            batch = await self._next(user, talk_id, batch.cursor if batch else after, batch, follow=False)
            for event in batch.events:
                yield event
            is_answered = batch.is_answer if batch.events else is_answered
        if not is_answered:
            self._check_open()

    async def _until_closed(self, events: AsyncIterator[SubscriptionEvent]) -> AsyncIterator[SubscriptionEvent]:
        async for event in events:
            yield event
        self._check_open()

    def _check_open(self) -> None:
        if self._service.roost.context.closing:
            raise CutOff

    def _next(
        self, user: str, talk_id: str, after: str | None, last: _Batch | None, *, follow: bool
    ) -> Awaitable[_Batch]:
        """Wait for changes after the cursor; those that have read equally far wait for the same ones."""
        return self._reads.get((user, talk_id, after, follow), partial(self._read, user, talk_id, after, last, follow))

    async def _read(self, user: str, talk_id: str, after: str | None, last: _Batch | None, follow: bool) -> _Batch:
        follower = last.follower if last is not None else None
        if follower is None or follower.cursor != after:  # others have read on with it
            follower = self._service.roost.talks.follower(user, talk_id, after=after, follow=follow)
        return _Batch(await follower.read(), after, follower)


def _is_answer(change: Change) -> bool:
    """Return whether a run has ended with this change; an interrupted one is run again after the next start."""
    return change.message.sender is Sender.AGENT and change.message.status in (Status.COMPLETE, Status.FAILED)


def _json(value: object) -> str:
    return json.dumps(shown(value), separators=(",", ":"))


def _needed(value: str | None, name: str) -> str:
    if value is None:
        raise Invalid(f"{name}: must be given for this topic")
    return value


async def _meeting(
    service: AsyncAgentService, caller: Caller, meeting_id: str, seen_by: str | None, after: str | None
) -> AsyncIterator[SubscriptionEvent]:
    async for view in service.meetings.watch(caller.user, meeting_id, seen_by=seen_by, after=after):
        yield SubscriptionEvent(view.cursor, _json(view))


async def _mail(service: AsyncAgentService, caller: Caller, after: str) -> AsyncIterator[SubscriptionEvent]:
    async for mail in service.mail.follow(caller.user, after=after):
        yield SubscriptionEvent(mail.cursor, _json(mail))


async def _facts(facts: AsyncIterator[Fact]) -> AsyncIterator[SubscriptionEvent]:
    async for fact in facts:
        yield SubscriptionEvent(fact.cursor, _json(fact))
