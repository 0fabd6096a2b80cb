"""Subscriptions: what changes in a talk, in a meeting, in one's mailbox, or in all that the monitor records."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from roost.api.endpoints import Caller
from roost.core.monitoring.facts import Name
from roost.core.values import checks
from roost.errors import Invalid
from roost.protocol.talks import ChangeEvent
from roost.protocol.values import Request, shown
from roost.service import AsyncAgentService


class SubscriptionTopic(StrEnum):
    """What can be subscribed to."""

    TALK = "talk"
    MEETING = "meeting"
    AGENTS = "agents"
    MAIL = "mail"
    MONITOR = "monitor"


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
    meeting_id: str | None = None
    seen_by: str | None = None
    agent_id: str | None = None


class UnsubscribeParams(Request):
    subscription: str


@dataclass(frozen=True, slots=True)
class SubscriptionEvent:
    """Event of a subscription; subscribing again `after` its cursor continues with the next one."""

    cursor: str
    content: Any


async def events(
    service: AsyncAgentService, caller: Caller, params: SubscribeParams
) -> AsyncIterator[SubscriptionEvent]:
    """Return the events of a subscription; errors of the first read are raised at once."""
    topic = checks.choice(params.topic, "the topic", SubscriptionTopic)
    caller.require(SCOPES[topic])
    match topic:
        case SubscriptionTopic.TALK:
            talk_id = _needed(params.talk_session_id, "talkSessionId")
            await service.get_messages(caller.user, talk_id, after=params.after, limit=1)
            return _talk(service, caller, talk_id, params.after)
        case SubscriptionTopic.MEETING:
            meeting_id = _needed(params.meeting_id, "meetingId")
            await service.meetings.view(caller.user, meeting_id, seen_by=params.seen_by, limit=1)
            return _meeting(service, caller, meeting_id, params.seen_by, params.after)
        case SubscriptionTopic.AGENTS:
            return _facts(service, caller, params.after, _about(caller, params.agent_id), only_agents=True)
        case SubscriptionTopic.MAIL:
            page = await service.mail.arrivals(caller.user, after=params.after, limit=1)  # from now on
            return _mail(service, caller, page.cursor if params.after is None else params.after)
        case SubscriptionTopic.MONITOR:
            return _facts(service, caller, params.after)


def _needed(value: str | None, name: str) -> str:
    if value is None:
        raise Invalid(f"{name}: must be given for this topic")
    return value


def _about(caller: Caller, agent_id: str | None) -> str | None:
    return None if agent_id is None else f"{caller.user}/{checks.name(agent_id, 'the agent id')}"


async def _talk(
    service: AsyncAgentService, caller: Caller, talk_id: str, after: str | None
) -> AsyncIterator[SubscriptionEvent]:
    async for change in service.stream_messages(caller.user, talk_id, after=after, follow=True):
        yield SubscriptionEvent(change.cursor, ChangeEvent.of(change).model_dump(mode="json", exclude={"cursor"}))


async def _meeting(
    service: AsyncAgentService, caller: Caller, meeting_id: str, seen_by: str | None, after: str | None
) -> AsyncIterator[SubscriptionEvent]:
    async for view in service.meetings.watch(caller.user, meeting_id, seen_by=seen_by, after=after):
        yield SubscriptionEvent(view.cursor, shown(view))


async def _mail(service: AsyncAgentService, caller: Caller, after: str) -> AsyncIterator[SubscriptionEvent]:
    async for mail in service.mail.follow(caller.user, after=after):
        yield SubscriptionEvent(mail.cursor, shown(mail))


def _facts(
    service: AsyncAgentService,
    caller: Caller,
    after: str | None,
    about: str | None = None,
    *,
    only_agents: bool = False,
) -> AsyncIterator[SubscriptionEvent]:
    facts = service.monitor.follow(caller.user, after=after)  # from now on, not from the first read

    async def found() -> AsyncIterator[SubscriptionEvent]:
        async for fact in facts:
            is_agent = "/" in (fact.about or "")
            is_wanted = (about is None or fact.about == about) and (is_agent or not only_agents)
            if is_wanted or fact.name is Name.FACTS_MISSED:
                yield SubscriptionEvent(fact.cursor, shown(fact))

    return found()
