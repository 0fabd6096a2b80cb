"""REST routes of talks: one route per method of the service, for the authenticated user."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from sse_starlette import EventSourceResponse

import roost
from roost.api.auth import CODE_LIFE, Identity
from roost.api.error_responses import LOCAL
from roost.api.limits.bodies import BodyRoute
from roost.api.routes import namespaces
from roost.api.routes.dependencies import User, address_of
from roost.api.routes.streams import Streams
from roost.core.limits.limits import Limits
from roost.core.talks.messages import PAGE
from roost.errors import Forbidden
from roost.protocol.errors import ErrorReply
from roost.protocol.talks import (
    HealthReply,
    LinkReply,
    MessageReply,
    NewMessage,
    NewTalk,
    PageReply,
    ProfileList,
    ProfileReply,
    ReceiptReply,
    StopRequest,
    TalkChange,
    TalkList,
    TalkReply,
)
from roost.service import AsyncAgentService

PREFIX = "/api/v1"
_FAULT = {"application/json": {"schema": {"$ref": f"#/components/schemas/{ErrorReply.__name__}"}}}
# Only one status names the model: FastAPI builds a validator for each, which would take most of the start.
FAULTS: dict[int | str, dict[str, Any]] = {
    422: {"model": ErrorReply},
    **{status: {"content": _FAULT} for status in (401, 403, 404, 409, 429, 503)},
}


def routes(service: AsyncAgentService, identity: Identity, limits: Limits) -> APIRouter:
    """Return all routes under /api/v1."""
    api = APIRouter(prefix=PREFIX, responses=FAULTS, route_class=BodyRoute)
    _talks(api, service)
    _messages(api, service, Streams(service, limits.send_timeout))
    namespaces.add(api, service, identity)
    _others(api, service, identity)
    return api


def _talks(api: APIRouter, service: AsyncAgentService) -> None:
    @api.post("/talks", status_code=201)
    async def create_talk(user: User, talk: NewTalk) -> TalkReply:
        talk_id = await service.create_talk_session(user, **talk.model_dump(by_alias=False))
        return TalkReply.of(await service.get_session(user, talk_id))

    @api.get("/talks")
    async def list_talks(user: User, limit: int = PAGE, before: str | None = None) -> TalkList:
        found = await service.list_sessions(user, limit=limit, before=before)
        return TalkList(talks=[TalkReply.of(talk) for talk in found])

    @api.get("/talks/{talk_id}")
    async def get_talk(user: User, talk_id: str) -> TalkReply:
        return TalkReply.of(await service.get_session(user, talk_id))

    @api.patch("/talks/{talk_id}")
    async def change_talk(user: User, talk_id: str, change: TalkChange) -> TalkReply:
        options = change.options.model_dump(by_alias=False) if change.options else None
        # One call instead of `configure` and `rename`: a rejected part then changes nothing.
        talk = await service.configure(
            user, talk_id, title=change.title, profile=change.profile, busy=change.busy, options=options
        )
        return TalkReply.of(talk)

    @api.delete("/talks/{talk_id}", status_code=204)
    async def delete_talk(user: User, talk_id: str) -> Response:
        await service.delete(user, talk_id)
        return Response(status_code=204)


def _messages(api: APIRouter, service: AsyncAgentService, streams: Streams) -> None:
    @api.post("/talks/{talk_id}/messages", status_code=201)
    async def add_message(user: User, talk_id: str, message: NewMessage) -> MessageReply:
        stored = await service.add_message(user, talk_id, message.content, key=message.key, busy=message.busy)
        return MessageReply.of(stored)

    @api.get("/talks/{talk_id}/messages")
    async def get_messages(
        user: User, talk_id: str, after: str | None = None, before: int | None = None, limit: int = PAGE
    ) -> PageReply:
        return PageReply.of(await service.get_messages(user, talk_id, after=after, before=before, limit=limit))

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

    @api.post("/talks/{talk_id}/stop")
    async def stop(user: User, talk_id: str, request: StopRequest | None = None) -> ReceiptReply:
        wait = request.wait if request else 0.0
        return ReceiptReply.of(await service.stop(user, talk_id, wait=wait))


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
