"""Dependencies of routes: the authenticated user, the address of a request, and whether its client is connected."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.requests import HTTPConnection
from starlette.responses import Response

from roost.api.auth import Identity
from roost.api.endpoints import Caller
from roost.api.error_responses import LOCAL, unauthenticated
from roost.api.security import SCOPES, USER
from roost.core.accounts.tokens import ALL
from roost.errors import Forbidden


def signed_in(request: Request) -> str:
    """Return the user that the security middleware has authenticated; raise 401 if there is none.

    For routes that check the scopes of tokens themselves.
    """
    user: str | None = request.scope.get(USER)
    if user is None:
        raise unauthenticated()
    return user


def user_of(request: Request) -> str:
    """Return the authenticated user; raise Forbidden for a token that has not every scope."""
    user = signed_in(request)
    if ALL not in scopes_of(request):
        raise Forbidden(f"this needs a token with the scope {ALL!r}, which allows everything")
    return user


def user_with(scope: str) -> Callable[[Request], str]:
    """Return a dependency: the authenticated user; it raises Forbidden for a token without this scope."""

    def user(request: Request) -> str:
        found = signed_in(request)
        Caller(found, scopes=scopes_of(request)).require(scope)
        return found

    return user


def scopes_of(connection: HTTPConnection) -> tuple[str, ...]:
    """Return the scopes of the API token; everything if the request has none."""
    found: tuple[str, ...] = connection.scope.get(SCOPES, (ALL,))
    return found


def address_of(connection: HTTPConnection) -> str:
    """Return the client's address, or an empty string if it is unknown."""
    return connection.client.host if connection.client else ""


def caller_of(connection: HTTPConnection, user: str, identity: Identity) -> Caller:
    """Return the caller of a request or of a WebSocket."""
    return Caller(user, address_of(connection), is_operator(connection, identity), scopes_of(connection))


def is_operator(connection: HTTPConnection, identity: Identity) -> bool:
    """Return True for the local user and for holders of the token: they run the server and own its store."""
    if connection.scope.get(LOCAL):
        return True
    return connection.scope.get(USER) == identity.local_user and ALL in scopes_of(connection)


async def while_connected(request: Request, call: Coroutine[Any, Any, Any]) -> Any:
    """Return the result of a call; cancel the call if the client disconnects first."""
    doing = asyncio.ensure_future(call)
    leaving = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait((doing, leaving), return_when=asyncio.FIRST_COMPLETED)
        return await doing if doing.done() else Response(status_code=204)  # the client is gone
    finally:
        for task in (doing, leaving):
            task.cancel()
        await asyncio.gather(doing, leaving, return_exceptions=True)


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _on_loop(found: Callable[[Request], str]) -> Callable[[Request], Coroutine[Any, Any, str]]:
    """Return a dependency that is called on the loop: FastAPI calls plain functions on threads, which takes longer."""

    async def dependency(request: Request) -> str:
        return found(request)

    return dependency


User = Annotated[str, Depends(_on_loop(user_of))]
SignedIn = Annotated[str, Depends(_on_loop(signed_in))]
TalkReader = Annotated[str, Depends(_on_loop(user_with("talks:read")))]
TalkWriter = Annotated[str, Depends(_on_loop(user_with("talks:write")))]
