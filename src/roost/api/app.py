"""ASGI application of one Roost: the API, and the pages mounted behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

import roost
from roost.api import error_responses, openapi
from roost.api.account_pages import routes as account_pages
from roost.api.account_pages.context import AccountPages
from roost.api.auth import Identity
from roost.api.credentials import CredentialVerifier
from roost.api.endpoints import endpoints
from roost.api.error_responses import HttpError
from roost.api.openai import routes as openai
from roost.api.pages import mounted
from roost.api.readiness import Readiness
from roost.api.routes import api_page, client_files, docs, hooks, live, mcp, metrics, rest
from roost.api.rpc import sockets as rpc
from roost.api.security import SecurityMiddleware
from roost.api.sign_in.authentication import Authentication
from roost.api.sign_in.cookies import SessionCookies
from roost.api.sign_in.guesses import GuessLimit
from roost.api.sign_in.mode import SignInMode
from roost.api.sign_in.proxies import TrustedProxies
from roost.api.subscriptions import Subscriptions
from roost.errors import NotFound
from roost.protocol.openai import PREFIX
from roost.service import AgentService
from roost.settings import Settings

if TYPE_CHECKING:
    from streamlit.web.server.starlette import App as PageApp

    from roost.api.sign_in.oidc import OidcProvider

RunningPart = Callable[[], AbstractAsyncContextManager[None]]
"""Part of the application that runs while it does."""
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def create_app(service: AgentService, settings: Settings, identity: Identity, *, pages: bool = True) -> FastAPI:
    """Return the API of this service, and with `pages` the pages at `/`. It closes the service at its end."""
    api = service.asynchronous
    identity.now = service.roost.context.host.clock.now
    api.users.reserved.add(identity.local_user)
    mode, oidc = SignInMode(settings, api.users.exist), _provider(settings)
    shown = mounted.mounted(service, identity, settings, live.PATH, mode) if pages else None
    authentication = Authentication(api, identity, mode, oidc)
    credentials = CredentialVerifier(authentication.verify)
    sockets, ready = live.LiveSockets(api, identity, settings.limits), Readiness(api)
    mcp_endpoint = mcp.McpEndpoint(api, identity, settings.limits)
    running = [sockets.running, ready.watched, credentials.running, mcp_endpoint.running]
    app = _application(service, shown, running)
    methods, subscriptions = tuple(endpoints(api, settings.limits)), Subscriptions(api)
    # Middleware added last runs first.
    sockets_of_programs = rpc.RpcSockets(api, methods, subscriptions, identity, settings.limits)
    app.add_middleware(rpc.RpcMiddleware, sockets=sockets_of_programs)
    app.add_middleware(
        SecurityMiddleware,
        identity=identity,
        settings=settings,
        authentication=authentication,
        verifier=credentials,
        nodes=api.count_nodes,
    )
    # First: routes are searched in order, and every millisecond is noticed here.
    openai.add(app, api, settings.limits)
    rest.add(app, api, methods, subscriptions, identity, settings.limits)
    _health(app, ready)
    metrics.add(app, service, identity, behind_proxy=settings.behind_proxy)
    for part in (api_page, docs, client_files):
        part.add(app)
    live.add(app, sockets)
    mcp.add(app, mcp_endpoint)
    cookies, proxies = SessionCookies(identity, settings.url), TrustedProxies(settings.proxies)
    guesses = GuessLimit(api, identity)
    parts = AccountPages(api, identity, cookies, mode, credentials, guesses, proxies, oidc)
    account_pages.add(app, parts, settings.url)
    hooks.add(app, hooks.HookEndpoint(api, settings.limits))
    _nothing_else(app)
    if shown is not None:
        app.mount("/", mounted.KnownPages(shown))
    else:
        app.add_api_route("/", _no_pages, include_in_schema=False)
    return app


def _application(service: AgentService, shown: PageApp | None, running: Sequence[RunningPart]) -> FastAPI:
    """Return an application without routes. Its parts run while it does, and the service is closed after them."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(asyncio.to_thread, service.close)
            if shown is not None:
                await stack.enter_async_context(shown.lifespan()(app))
            for part in running:
                await stack.enter_async_context(part())
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
    return app


async def _no_pages(request: Request) -> Response:
    """Lead browsers to the account, where a sign-in ends too: a server without pages has nothing else for people."""
    if "text/html" not in request.headers.get("accept", ""):
        raise NotFound(error_responses.NO_PAGE)
    return RedirectResponse("/account", 303)


def _provider(settings: Settings) -> OidcProvider | None:
    if settings.oidc is None:
        return None
    from roost.api.sign_in.oidc import OidcProvider  # with the libraries of signatures, which take time to import

    return OidcProvider(settings.oidc, settings.client_secret())


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
        raise NotFound("no such route: /docs/api lists all")

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
