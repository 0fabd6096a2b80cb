"""Who asks, for routes."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from roost.api.door import USER
from roost.api.faults import unauthenticated


def user_of(request: Request) -> str:
    """Who the door has found to be asking."""
    user: str | None = request.scope.get(USER)
    if user is None:
        raise unauthenticated()
    return user


User = Annotated[str, Depends(user_of)]
