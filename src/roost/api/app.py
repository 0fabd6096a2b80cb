"""One ASGI application: the API, and the pages behind it, for one Roost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.responses import JSONResponse
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

import roost
from roost.api import faults, metrics, rest
from roost.api import pages as page_app
from roost.api.auth import Identity
from roost.api.door import Door
from roost.api.faults import Refused
from roost.errors import NotFound, RoostError
from roost.service import AgentService
from roost.settings import Settings

STORE_PATIENCE = 5.0
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def create_app(service: AgentService, settings: Settings, identity: Identity, *, pages: bool = True) -> FastAPI:
    """The API of this service, and with `pages` the pages at `/`. The service is closed with the application."""
    shown = page_app.mounted(service, identity) if pages else None

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(asyncio.to_thread, service.close)
            if shown is not None:
                await stack.enter_async_context(shown.lifespan()(app))
            yield

    app = FastAPI(
        title="Roost", version=roost.__version__, lifespan=lifespan, docs_url=None, redoc_url=None,
        openapi_url=f"{rest.PREFIX}/openapi.json", summary="A home for long-lived agents.",
    )  # fmt: skip
    faults.set_up(app)
    # The last that is added comes first.
    app.add_middleware(Door, identity=identity, limits=settings.limits, hosts=(settings.host, *settings.hosts))
    app.include_router(rest.routes(service.asynchronous, identity))
    _health(app, service)
    metrics.add(app, service, identity)
    _nothing_else(app)
    if shown is not None:
        app.mount("/", shown)
    return app


def _nothing_else(app: FastAPI) -> None:
    """Else the pages would answer with themselves, as they do on every path and to every method."""
    routes = tuple(app.routes)

    async def nothing(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await receive()
            return await send({"type": "websocket.close", "code": 1008})
        asked = {**scope, "root_path": scope.get("app_root_path", "")}  # as it was before this was mounted
        allowed = [m for m in METHODS if any(r.matches({**asked, "method": m})[0] is Match.FULL for r in routes)]
        if allowed:
            raise Refused(405, "method_not_allowed", f"this is asked for with {' or '.join(allowed)}")
        raise NotFound("there is no such route: see /api/v1/openapi.json")

    app.mount("/api", nothing)


def _health(app: FastAPI, service: AgentService) -> None:
    @app.get("/healthz")
    async def healthz() -> dict[str, Any]:
        """The process answers."""
        return {"name": "roost", "status": "ok"}

    @app.get("/readyz")
    async def readyz() -> JSONResponse:
        """It can do its work: all workers are up, and the store can be read."""
        health = service.health()
        ready = health.problem is None and health.workers > 0 and await _answers(service)
        status = "ok" if ready else "down"
        return JSONResponse({"name": "roost", "status": status}, 200 if ready else 503)


async def _answers(service: AgentService) -> bool:
    try:
        async with asyncio.timeout(STORE_PATIENCE):
            await service.asynchronous.list_sessions("readyz", limit=1)
    except (RoostError, TimeoutError):
        return False
    return True
