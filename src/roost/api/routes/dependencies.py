"""Dependencies of routes: the authenticated user and the address of a request."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from roost.api.auth import Identity
from roost.api.endpoints import Caller
from roost.api.error_responses import LOCAL, unauthenticated
from roost.api.security import USER


def user_of(request: Request) -> str:
    """Return the user that the security middleware has authenticated; raise 401 if there is none."""
    user: str | None = request.scope.get(USER)
    if user is None:
        raise unauthenticated()
    return user


def address_of(connection: HTTPConnection) -> str:
    """Return the client's address, or an empty string if it is unknown."""
    return connection.client.host if connection.client else ""


def caller_of(connection: HTTPConnection, user: str, identity: Identity) -> Caller:
    """Return the caller of a request or of a WebSocket."""
    return Caller(user, address_of(connection), is_operator(connection, identity))


def is_operator(connection: HTTPConnection, identity: Identity) -> bool:
    """Return True for the local user and for holders of the token: they run the server and own its store."""
    return bool(connection.scope.get(LOCAL)) or connection.scope.get(USER) == identity.local_user


User = Annotated[str, Depends(user_of)]
