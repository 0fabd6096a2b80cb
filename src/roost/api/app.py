"""ASGI application of one Roost: the API, and the pages mounted behind it."""

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
from roost.api import error_responses, openapi
from roost.api import pages as page_app
from roost.api.auth import Identity
from roost.api.endpoints import endpoints
from roost.api.error_responses import HttpError
from roost.api.openai import routes as openai
from roost.api.readiness import Readiness
from roost.api.routes import api_page, docs, live, mcp, metrics, rest
from roost.api.rpc import sockets as rpc
from roost.api.security import SecurityMiddleware
from roost.api.tokens import TokenVerifier
from roost.errors import NotFound
from roost.protocol.openai import PREFIX
from roost.service import AgentService
from roost.settings import Settings

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def create_app(service: AgentService, settings: Settings, identity: Identity, *, pages: bool = True) -> FastAPI:
    """Return the API of this service, and with `pages` the pages at `/`. It closes the service at its end."""
    shown = page_app.mounted(service, identity, settings, live.PATH) if pages else None
    sockets = live.LiveSockets(service.asynchronous, identity, settings.limits)
    methods = tuple(endpoints(service.asynchronous))
    ready = Readiness(service.asynchronous)
    tokens = TokenVerifier(service.asynchronous.tokens.authenticate)
    mcp_endpoint = mcp.McpEndpoint(service.asynchronous, identity, settings.limits)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(asyncio.to_thread, service.close)
            if shown is not None:
                await stack.enter_async_context(shown.lifespan()(app))
            await stack.enter_async_context(sockets.running())
            await stack.enter_async_context(ready.watched())
            await stack.enter_async_context(tokens.running())
            await stack.enter_async_context(mcp_endpoint.running())
            yield

    app = FastAPI(
        title="Roost",
        version=roost.__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=f"{rest.PREFIX}/openapi.json",
        summary="A home for long-lived agents.",
    )
    error_responses.set_up(app)
    openapi.set_up(app)
    # Middleware added last runs first.
    app.add_middleware(
        SecurityMiddleware,
        identity=identity,
        limits=settings.limits,
        hosts=(settings.host, *settings.hosts),
        tokens=tokens,
    )
    openai.add(app, service.asynchronous)  # first: routes are searched in order, and every millisecond is noticed here
    app.include_router(rest.routes(service.asynchronous, methods, identity, settings.limits))
    _health(app, ready)
    metrics.add(app, service, identity)
    api_page.add(app)
    docs.add(app)
    live.add(app, sockets)
    rpc.add(app, rpc.RpcSockets(service.asynchronous, methods, identity, settings.limits))
    mcp.add(app, mcp_endpoint)
    _nothing_else(app)
    if shown is not None:
        app.mount("/", page_app.KnownPages(shown))
    return app


def _nothing_else(app: FastAPI) -> None:
    """Answer unknown paths under /api and /v1: the pages would otherwise answer every path and every method."""
    routes = tuple(app.routes)

    async def nothing(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await receive()
            return await send({"type": "websocket.close", "code": 1008})
        asked = {**scope, "root_path": scope.get("app_root_path", "")}  # the path before mounting
        allowed = [m for m in METHODS if any(r.matches({**asked, "method": m})[0] is Match.FULL for r in routes)]
        if allowed:
            message = f"method not allowed: use {' or '.join(allowed)}"
            raise HttpError(405, "method_not_allowed", message, {"Allow": ", ".join(allowed)})
        raise NotFound("no such route: see /api/v1/openapi.json")

    for prefix in ("/api", PREFIX):
        app.mount(prefix, nothing)


def _health(app: FastAPI, ready: Readiness) -> None:
    @app.get("/healthz")
    async def healthz() -> dict[str, Any]:
        """Return 200 while the process answers."""
        return {"name": "roost", "status": "ok"}

    @app.get("/readyz")
    async def readyz() -> JSONResponse:
        """Return 200 if all workers are up and writes are committed, otherwise 503 with the problem."""
        problem = await ready.problem()
        if problem is None:
            return JSONResponse({"name": "roost", "status": "ok"})
        return JSONResponse({"name": "roost", "status": "down", "problem": problem}, 503)
