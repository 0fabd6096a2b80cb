"""ETags of what is read: a client that has the same reply already gets 304 and no body."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from hashlib import sha256
from typing import Any

from fastapi import Request, Response

from roost.api.limits.bodies import BodyRoute


class TaggedRoute(BodyRoute):
    """Route whose JSON replies to GET have an ETag."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        if "GET" not in (self.methods or ()):
            return handle

        async def tagged(request: Request) -> Response:
            reply = await handle(request)
            if reply.status_code != 200 or reply.headers.get("content-type") != "application/json":
                return reply
            tag = f'"{sha256(reply.body).hexdigest()[:32]}"'
            if _is_known(tag, request.headers.get("if-none-match", "")):
                return Response(status_code=304, headers={"ETag": tag})
            reply.headers["ETag"] = tag
            return reply

        return tagged


def _is_known(tag: str, known: str) -> bool:
    return known.strip() == "*" or tag in [one.strip().removeprefix("W/") for one in known.split(",")]
