"""MCP over HTTP at `/mcp`. The `mcp` package is imported at the first request, since it takes long.

No session is kept, so that clients survive a restart. Each client still gets a session id: older clients cancel a call
by a request of its own, and the id tells apart the calls of several clients of one user.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from roost.api.auth import Identity
from roost.api.error_responses import HttpError
from roost.api.limits.bodies import LARGE, check
from roost.api.limits.concurrency import ConcurrencyLimit
from roost.api.limits.requests import most_bytes
from roost.api.routes.dependencies import address_of, is_operator, user_of
from roost.core.limits.limits import Limits
from roost.errors import Unavailable
from roost.mcp_server.callers import McpCaller, RunningCalls
from roost.protocol.rpc import INVALID_REQUEST
from roost.service import AsyncAgentService

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

log = logging.getLogger("roost.api.mcp")

PATHS = ("/mcp", "/mcp/")
SESSION = "mcp-session-id"
VERSION = "mcp-protocol-version"
CANCEL = "notifications/cancelled"


class McpEndpoint:
    """ASGI application at `/mcp`."""

    def __init__(self, service: AsyncAgentService, identity: Identity, limits: Limits) -> None:
        self._service = service
        self._identity = identity
        self._most_bytes = most_bytes(limits)
        self._places = ConcurrencyLimit("MCP calls", limits)
        self._calls = RunningCalls()
        self._asked = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self._ready: asyncio.Future[StreamableHTTPSessionManager] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(self._serve(), name="mcp")
        try:
            yield
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        user = user_of(request)
        if request.method != "POST":  # there are no messages of the server's own, and no sessions to end
            return await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)
        try:
            body = await request.body()
            await _checked(body)
        except ClientDisconnect:
            return None
        except HttpError as error:
            if error.status_code != 422:
                raise
            return await _invalid(error.detail)(scope, receive, send)
        self._cancel(user, request.headers, body)
        self._asked.set()
        server = await asyncio.shield(self._ready)
        return await server.handle_request(scope, _again(body, receive), _with_session(request.headers, send))

    async def _serve(self) -> None:
        """Import and run the server when it is needed for the first time."""
        await self._asked.wait()
        try:
            served = await asyncio.to_thread(import_module, "roost.mcp_server.server")
        except ModuleNotFoundError as error:
            log.warning("MCP is not available: the package %r is missing", error.name)
            needed = Unavailable(f"MCP needs the package {error.name!r}: pip install 'roost[mcp]'")
            self._ready.set_exception(needed)
            return
        host = served.McpHost(self._caller, self._served, self._place)
        server = served.over_http(served.create_server(host), self._most_bytes)
        async with server.run():
            self._ready.set_result(server)
            await asyncio.Event().wait()  # until it is cancelled

    # --- for the server --------------------------------------------------------------------------

    @asynccontextmanager
    async def _served(self) -> AsyncIterator[AsyncAgentService]:
        yield self._service

    def _caller(self, context: Any) -> McpCaller:
        request: Request = context.request
        return McpCaller(user_of(request), address_of(request), is_operator(request, self._identity))

    @contextmanager
    def _place(self, caller: McpCaller, context: Any) -> Iterator[None]:
        session = context.request.headers.get(SESSION, "")
        with self._places.taken(caller.user, caller.address), ExitStack() as stack:
            if session:
                stack.enter_context(self._calls.running(caller.user, session, context.request_id))
            yield

    def _cancel(self, user: str, headers: Headers, body: bytes) -> None:
        """Cancel the call that a notification names: it arrives on another connection than the call."""
        session = headers.get(SESSION, "")
        if not session or CANCEL.encode() not in body:
            return
        try:
            message = json.loads(body)
            if message["method"] == CANCEL:
                self._calls.cancel(user, session, message["params"]["requestId"])
        except (ValueError, TypeError, KeyError, RecursionError):
            return  # the server reports it


async def _checked(body: bytes) -> None:
    if len(body) < LARGE:
        check(body)
    else:
        await asyncio.to_thread(check, body)


def _invalid(sentence: str) -> Response:
    error = {"code": INVALID_REQUEST, "message": sentence}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, 400)


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that begins with the body that was read."""
    unread = True

    async def receiving() -> Message:
        nonlocal unread
        if unread:
            unread = False
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return receiving


def _with_session(request: Headers, send: Send) -> Send:
    """Give a new client a session id. Newer clients name their version in each request, and have no sessions."""
    if SESSION in request or VERSION in request:
        return send

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] < 400:
            MutableHeaders(scope=message)[SESSION] = secrets.token_urlsafe(16)
        await send(message)

    return sending


def add(app: FastAPI, endpoint: McpEndpoint) -> None:
    app.router.routes.extend(Route(path, endpoint, include_in_schema=False) for path in PATHS)
