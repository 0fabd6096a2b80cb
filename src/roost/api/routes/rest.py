"""All routes under /api/v1: those of namespaces, the stream of a talk, profiles, health, sign-in links."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Header, Query, Request

import roost
from roost.api.auth import CODE_LIFE, Identity
from roost.api.endpoints import Endpoint, current_user
from roost.api.error_responses import LOCAL
from roost.api.routes import attachments, namespaces
from roost.api.routes.dependencies import SignedIn, TalkReader, User, address_of, caller_of
from roost.api.routes.etags import TaggedRoute
from roost.api.routes.event_stream import EventStream
from roost.api.routes.streams import Streams
from roost.api.subscriptions import SubscribeParams, Subscriptions
from roost.core.accounts.current_user import CurrentUser
from roost.core.limits.limits import Limits
from roost.errors import Forbidden
from roost.protocol.errors import PROBLEM, Problem
from roost.protocol.talks import HealthReply, LinkReply, ProfileList, ProfileReply
from roost.protocol.values import wired
from roost.service import AsyncAgentService

PREFIX = "/api/v1"
_PROBLEM = {PROBLEM: {"schema": {"$ref": f"#/components/schemas/{Problem.__name__}"}}}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"description": HTTPStatus(status).phrase, "content": _PROBLEM}
    for status in (401, 403, 404, 409, 413, 422, 429, 503)
}


def add(
    app: FastAPI,
    service: AsyncAgentService,
    endpoints: Iterable[Endpoint],
    subscriptions: Subscriptions,
    identity: Identity,
    limits: Limits,
) -> None:
    """Add all routes under /api/v1."""
    first, last = _router(), _router()
    _streams(first, service, Streams(service, subscriptions, limits), identity)
    attachments.add(first, service, limits)
    namespaces.bind(app, endpoints, identity)
    _others(last, service, identity)
    for router in (first, _namespaces(), last):
        app.router.routes += router.routes  # not included: FastAPI would build each route again at the first request


def _router() -> APIRouter:
    return APIRouter(prefix=PREFIX, responses=PROBLEMS, route_class=TaggedRoute)


@cache
def _namespaces() -> APIRouter:
    """Return the routes of namespaces, built once for all applications: it takes a tenth of a second."""
    router = _router()
    namespaces.add(router)
    return router


async def _cursor(  # on the loop: FastAPI calls plain functions on threads, which takes longer
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID", description="Cursor of the last event.")] = None,
    after: Annotated[str | None, Query(description="A cursor; Last-Event-ID takes precedence.")] = None,
) -> str | None:
    return last_event_id or after or None


ResumedAfter = Annotated[str | None, Depends(_cursor)]
_TOPICS = {"mail": "Stream each mail to the user when it arrives.", "monitor": "Stream all that the monitor records."}


def _streams(api: APIRouter, service: AsyncAgentService, streams: Streams, identity: Identity) -> None:
    @api.get("/talks/{talk_id}/stream", response_class=EventStream, tags=["talks"])
    async def stream_messages(
        request: Request, user: TalkReader, talk_id: str, cursor: ResumedAfter, follow: bool = False
    ) -> EventStream:
        """Stream the messages of a talk while they are written, until the run ends, or with `follow` without end."""
        return await streams.open(user, talk_id, cursor, follow, address_of(request))

    @api.get("/agents/{agent_id}/stream", response_class=EventStream, tags=["agents"])
    async def stream_agent(request: Request, user: SignedIn, agent_id: str, cursor: ResumedAfter) -> EventStream:
        """Stream what the monitor records about an agent."""
        if cursor is None:  # a stream that is resumed may end with the deletion of the agent
            await service.agents.get(user, agent_id)
        params = SubscribeParams(topic="agents", agent_id=agent_id, after=cursor)
        return await streams.follow(caller_of(request, user, identity), params)

    @api.get("/meetings/{meeting_id}/stream", response_class=EventStream, tags=["meetings"])
    async def stream_meeting(
        request: Request,
        user: SignedIn,
        meeting_id: str,
        cursor: ResumedAfter,
        seen_by: Annotated[str | None, Query(alias="seenBy")] = None,
    ) -> EventStream:
        """Stream the view of a meeting after each change, until the meeting ends."""
        params = SubscribeParams(topic="meeting", meeting_id=meeting_id, seen_by=seen_by, after=cursor)
        return await streams.follow(caller_of(request, user, identity), params)

    for topic, about in _TOPICS.items():
        _add_stream(api, streams, identity, topic, about)


def _add_stream(api: APIRouter, streams: Streams, identity: Identity, topic: str, about: str) -> None:
    async def stream(request: Request, user: SignedIn, cursor: ResumedAfter) -> EventStream:
        params = SubscribeParams(topic=topic, after=cursor)
        return await streams.follow(caller_of(request, user, identity), params)

    api.add_api_route(
        f"/{topic}/stream",
        stream,
        methods=["GET"],
        response_class=EventStream,
        name=f"stream_{topic}",
        description=about,
        tags=[topic],
    )


def _others(api: APIRouter, service: AsyncAgentService, identity: Identity) -> None:
    @api.get("/me")
    async def me(request: Request, user: SignedIn) -> wired(CurrentUser):  # type: ignore[valid-type]  # a model
        """Return the user who is signed in, the role of the account, and the scopes of the token."""
        return await current_user(service, caller_of(request, user, identity))

    @api.get("/profiles")
    async def profiles(user: SignedIn) -> ProfileList:
        return ProfileList(profiles=[ProfileReply.of(profile) for profile in service.profiles()])

    @api.get("/health")
    async def health(user: SignedIn) -> HealthReply:
        return health_reply(service)

    @api.post("/links", status_code=201)
    async def create_link(user: User, request: Request) -> LinkReply:
        """Return a link that signs a browser in as the local user; only for the command line."""
        if not request.scope.get(LOCAL):
            raise Forbidden("sign-in links are created by the command line of this machine: run `roost link`")
        return LinkReply(path=f"/enter?code={identity.invite()}", seconds=CODE_LIFE)


def health_reply(service: AsyncAgentService) -> HealthReply:
    health = service.health()
    return HealthReply(
        version=roost.__version__,
        workers=health.workers,
        expected=health.expected,
        restarts=health.restarts,
        problem=health.problem,
        abandoned=health.abandoned,
        awake=health.awake,
        waiting_for_place=health.waiting_for_place,
    )
