"""REST routes of all namespaces but talks: one route per method, built from its signature."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel

from roost.api.auth import Identity
from roost.api.limits.concurrency import ConcurrencyLimit
from roost.api.routes.dependencies import User, address_of, is_operator
from roost.core.journal.run_history import Replay, RunEntry
from roost.protocol.namespaces import LONGEST_WAIT, Method, methods
from roost.service import AsyncAgentService
from roost.sync import NAMESPACES

HELD = "timeout"
"""Methods with this parameter wait."""
LONG = "within"
"""Methods with this parameter may take as long as the client stays connected."""


def add(api: APIRouter, service: AsyncAgentService, identity: Identity) -> None:
    """Add `POST /{namespace}/{method}` with an object of arguments, for the authenticated user."""
    waits = ConcurrencyLimit("waits")
    for name, kind in NAMESPACES.items():
        for method in methods(name, kind):
            _add(api, getattr(service, name), method, waits, identity)


def _add(api: APIRouter, namespace: Any, method: Method, waits: ConcurrencyLimit, identity: Identity) -> None:
    call = getattr(namespace, method.name)

    async def answer(request: Request, user: str, body: BaseModel) -> Any:
        found = await done(request, user, body)
        return found if is_operator(request, identity) else public(found)

    async def done(request: Request, user: str, body: BaseModel) -> Any:
        arguments = method.arguments(body)
        if method.has(LONG):
            return await _while_there(request, call(user, **arguments))
        if not method.has(HELD):
            return await call(user, **arguments)
        arguments[HELD] = _bounded(arguments.get(HELD))
        with waits.taken(user, address_of(request)):
            return await call(user, **arguments)

    answer.__signature__ = _signature(method)  # type: ignore[attr-defined]
    nothing: dict[str, Any] = {"status_code": 204, "response_class": Response} if method.gives is type(None) else {}
    api.add_api_route(
        f"/{method.path}",
        answer,
        methods=["POST"],
        tags=[method.namespace],
        operation_id=f"{method.namespace}_{method.name}",
        name=f"{method.namespace}.{method.name}",
        response_model=None if nothing else method.gives,
        description=inspect.getdoc(method.coroutine),
        **nothing,
    )


def public(found: Any) -> Any:
    """Return what any user may read: tracebacks and the texts of exceptions are for the operator alone."""
    if isinstance(found, RunEntry):
        return replace(found, traceback=None)
    if isinstance(found, Replay) and found.error is not None:
        return replace(found, error=found.error.partition(":")[0])
    return found


async def _while_there(request: Request, call: Coroutine[Any, Any, Any]) -> Any:
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


def _bounded(timeout: float | None) -> float:
    return LONGEST_WAIT if timeout is None else min(timeout, LONGEST_WAIT)


def _signature(method: Method) -> inspect.Signature:
    """Return the signature for FastAPI. Where no argument is required, the body may be omitted."""
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
