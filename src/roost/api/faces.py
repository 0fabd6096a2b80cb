"""REST for everything but talks: one route for each method of the service's faces, made from its signature."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel

from roost.api.places import Places
from roost.api.users import User
from roost.faces import FACES
from roost.protocol.faces import LONGEST_WAIT, Method, methods
from roost.service import AsyncAgentService

HELD = "timeout"
"""A method with this parameter waits."""
LONG = "within"
"""A method with this one may take as long as whoever asks is there."""


def add(api: APIRouter, service: AsyncAgentService) -> None:
    """`POST /{face}/{method}` with an object of arguments, always for the user who asks."""
    waits = Places("waits")
    for name, kind in FACES.items():
        for method in methods(name, kind):
            _add(api, getattr(service, name), method, waits)


def _add(api: APIRouter, face: Any, method: Method, waits: Places) -> None:
    call = getattr(face, method.name)

    async def answer(request: Request, user: str, body: BaseModel) -> Any:
        arguments = method.arguments(body)
        if method.has(LONG):
            return await _while_there(request, call(user, **arguments))
        if not method.has(HELD):
            return await call(user, **arguments)
        arguments[HELD] = _bounded(arguments.get(HELD))
        with waits.taken(user):
            return await call(user, **arguments)

    answer.__signature__ = _signature(method)  # type: ignore[attr-defined]
    nothing: dict[str, Any] = {"status_code": 204, "response_class": Response} if method.gives is type(None) else {}
    api.add_api_route(
        f"/{method.path}", answer, methods=["POST"], tags=[method.face], operation_id=f"{method.face}_{method.name}",
        name=f"{method.face}.{method.name}", response_model=None if nothing else method.gives,
        description=inspect.getdoc(method.coroutine), **nothing,
    )  # fmt: skip


async def _while_there(request: Request, call: Coroutine[Any, Any, Any]) -> Any:
    """What it gives; if whoever asked goes away before that, it is ended."""
    doing = asyncio.ensure_future(call)
    leaving = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait((doing, leaving), return_when=asyncio.FIRST_COMPLETED)
        return await doing if doing.done() else Response(status_code=204)  # which nobody reads
    finally:
        for task in (doing, leaving):
            task.cancel()
        await asyncio.gather(doing, leaving, return_exceptions=True)


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _bounded(timeout: float | None) -> float:
    return LONGEST_WAIT if timeout is None else min(timeout, LONGEST_WAIT)


def _signature(method: Method) -> inspect.Signature:
    """By which FastAPI knows what to ask for; where nothing is needed, the body may be left out."""
    needed = any(field.is_required() for field in method.takes.model_fields.values())
    default = inspect.Parameter.empty if needed else method.takes()
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Signature(
        [
            inspect.Parameter("request", kind, annotation=Request),
            inspect.Parameter("user", kind, annotation=User),
            inspect.Parameter("body", kind, annotation=method.takes, default=default),
        ]
    )
