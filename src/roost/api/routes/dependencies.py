"""Dependencies of routes: the authenticated user and the address of a request."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from roost.api.auth import Identity
from roost.api.error_responses import LOCAL, unauthenticated
from roost.api.security import USER


def user_of(request: Request) -> str:
    """Return the user that the security middleware has authenticated; raise 401 if there is none."""
    user: str | None = request.scope.get(USER)
    if user is None:
        raise unauthenticated()
    return user


def address_of(request: Request) -> str:
    """Return the client's address, or an empty string if it is unknown."""
    return request.client.host if request.client else ""


def is_operator(request: Request, identity: Identity) -> bool:
    """Return True for the local user and for holders of the token: they run the server and own its store."""
    return bool(request.scope.get(LOCAL)) or request.scope.get(USER) == identity.local_user


User = Annotated[str, Depends(user_of)]
