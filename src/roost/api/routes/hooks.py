"""`POST /hooks/{token}`: requests of other programs, verified by the token in the URL and a signature.

They have no user who signs in: the token names the hook. A wrong token and a wrong signature are answered alike.
"""

from __future__ import annotations

from time import monotonic, time
from typing import Any
from urllib.parse import parse_qs

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from roost.api.error_responses import HttpError
from roost.api.limits import bodies
from roost.api.limits.rate_limits import RateLimit
from roost.core.limits.limits import Limits
from roost.core.webhooks.hook import PATH
from roost.errors import NotFound
from roost.service import AsyncAgentService

MOST_FIELDS = 1_000
"""Fields of a form."""


class HookEndpoint:
    """Verifies requests, bounds them, and passes them to the service."""

    def __init__(self, service: AsyncAgentService, limits: Limits) -> None:
        self._hooks = service.hooks
        self._most = limits.hook_bytes
        per_second, burst = limits.hook_requests_per_second, limits.hook_request_burst
        self._rates = RateLimit(monotonic, per_second, burst, service.count_nodes)

    async def receive(self, request: Request, token: str) -> JSONResponse:
        found = await self._hooks.find(token)
        if found is None:
            raise _refused()  # before a byte of the body is read
        body = await self._body(request)
        headers = {name.lower(): value for name, value in request.headers.items()}
        if not found.verifies(headers, body, time()):
            raise _refused()
        if not self._rates.admits(found.hook.hook_id):
            raise HttpError(429, "limit_reached", "too many requests to this hook: wait a moment and try again")
        parsed = _parsed(body, headers.get("content-type", "").partition(";")[0].strip().lower())
        return JSONResponse({"id": await self._hooks.accept(found.hook, headers, parsed)}, 202)

    async def _body(self, request: Request) -> bytes:
        read = bytearray()
        async for piece in request.stream():
            read += piece
            if len(read) > self._most:
                raise HttpError(413, "too_large", f"the body is too large: the limit is {self._most:,} bytes")
        return bytes(read)


def add(app: FastAPI, endpoint: HookEndpoint) -> None:
    @app.post(f"{PATH}{{token}}", include_in_schema=False)
    async def receive(request: Request, token: str) -> JSONResponse:
        return await endpoint.receive(request, token)

    @app.api_route(
        f"{PATH}{{rest:path}}", methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"], include_in_schema=False
    )
    async def nothing(rest: str) -> None:
        raise NotFound("no such page")


def _refused() -> HttpError:
    return HttpError(401, "unauthenticated", "the URL or the signature is not valid")


def _parsed(body: bytes, kind: str) -> Any:
    """Return the value of a body: of JSON, a form, or a text."""
    if kind == "application/x-www-form-urlencoded":
        return _form(_text(body))
    if kind == "application/json" or kind.endswith("+json"):
        return bodies.parsed(body)
    if kind and not kind.startswith("text/"):
        raise HttpError(415, "invalid", "the body must be JSON, a form or a text: set its Content-Type")
    return _text(body)


def _form(text: str) -> dict[str, str | list[str]]:
    try:
        fields = parse_qs(text, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise HttpError(422, "invalid", f"the form has too many fields: the limit is {MOST_FIELDS:,}") from None
    return {name: values[0] if len(values) == 1 else values for name, values in fields.items()}


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise HttpError(422, "invalid", "the body must be text in UTF-8") from None
