"""All routes under /api/v1: those of namespaces, the stream of a talk, profiles, health, sign-in links."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from sse_starlette import EventSourceResponse

import roost
from roost.api.auth import CODE_LIFE, Identity
from roost.api.endpoints import Endpoint
from roost.api.error_responses import LOCAL
from roost.api.limits.bodies import BodyRoute
from roost.api.routes import attachments, namespaces
from roost.api.routes.dependencies import User, address_of
from roost.api.routes.streams import Streams
from roost.core.limits.limits import Limits
from roost.errors import Forbidden
from roost.protocol.errors import PROBLEM, Problem
from roost.protocol.talks import HealthReply, LinkReply, ProfileList, ProfileReply
from roost.service import AsyncAgentService

PREFIX = "/api/v1"
_PROBLEM = {PROBLEM: {"schema": {"$ref": f"#/components/schemas/{Problem.__name__}"}}}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"description": HTTPStatus(status).phrase, "content": _PROBLEM}
    for status in (401, 403, 404, 409, 413, 422, 429, 503)
}


def routes(service: AsyncAgentService, endpoints: Iterable[Endpoint], identity: Identity, limits: Limits) -> APIRouter:
    """Return all routes under /api/v1."""
    api = APIRouter(prefix=PREFIX, responses=PROBLEMS, route_class=BodyRoute)
    _stream(api, Streams(service, limits.send_timeout))
    attachments.add(api, service, limits)
    namespaces.add(api, endpoints, identity)
    _others(api, service, identity)
    return api


def _stream(api: APIRouter, streams: Streams) -> None:
    @api.get("/talks/{talk_id}/stream", response_class=EventSourceResponse)
    async def stream_messages(
        request: Request,
        user: User,
        talk_id: str,
        last_event_id: Annotated[str | None, Header()] = None,
        after: Annotated[str | None, Query(description="A cursor; Last-Event-ID takes precedence.")] = None,
        follow: bool = False,
    ) -> EventSourceResponse:
        return await streams.open(user, talk_id, last_event_id or after or None, follow, address_of(request))


def _others(api: APIRouter, service: AsyncAgentService, identity: Identity) -> None:
    @api.get("/profiles")
    async def profiles(user: User) -> ProfileList:
        return ProfileList(profiles=[ProfileReply.of(profile) for profile in service.profiles()])

    @api.get("/health")
    async def health(user: User) -> HealthReply:
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
