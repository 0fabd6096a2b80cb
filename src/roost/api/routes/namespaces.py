"""Routes of all namespaces: one per method, built from its signature."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine, Iterable
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from roost.api.auth import Identity
from roost.api.endpoints import Endpoint
from roost.api.routes.dependencies import User, caller_of
from roost.protocol.namespaces import Method
from roost.protocol.routes import ID, PATH_ID


def add(api: APIRouter, endpoints: Iterable[Endpoint], identity: Identity) -> None:
    """Add the route of each method, for the authenticated user."""
    for endpoint in endpoints:
        if not endpoint.method.route.served_by:
            _add(api, endpoint, identity)


def _add(api: APIRouter, endpoint: Endpoint, identity: Identity) -> None:
    method, route = endpoint.method, endpoint.method.route

    async def answer(request: Request, user: str, body: BaseModel | None = None, **given: Any) -> Any:
        arguments = given if body is None else given | method.arguments(body)
        called = endpoint.call(caller_of(request, user, identity), arguments)
        return await (_while_there(request, called) if endpoint.is_long else called)

    answer.__signature__ = _signature(method)  # type: ignore[attr-defined]
    nothing: dict[str, Any] = {"response_class": Response} if method.gives is type(None) else {}
    api.add_api_route(
        f"/{route.path}",
        answer,
        methods=[route.verb],
        status_code=204 if nothing else route.status,
        response_model=None if nothing else method.replies,
        description=inspect.getdoc(method.coroutine),
        **_naming(method),
        **nothing,
    )


def _naming(method: Method) -> dict[str, Any]:
    """Return the names of a route in OpenAPI."""
    if method.route.name:
        return {"name": method.route.name}
    name = f"{method.namespace}.{method.name}"
    return {"name": name, "operation_id": name.replace(".", "_"), "tags": [method.namespace]}


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


def _signature(method: Method) -> inspect.Signature:
    """Return the signature for FastAPI."""
    parameters = [_parameter("request", Request), _parameter("user", User)]
    if method.route.has_id:
        parameters.append(_parameter(ID, Annotated[str, Path(alias=PATH_ID)]))
    if method.route.has_body:
        parameters.append(_parameter("body", method.takes, _default_body(method)))
    else:
        for name, (kind, default) in method.fields.items():
            parameters.append(_parameter(name, Annotated[kind, Query(alias=to_camel(name))], default))
    return inspect.Signature(parameters)


def _default_body(method: Method) -> Any:
    """Return the body of a request without one: where no argument is required, it may be omitted."""
    needed = method.route.needs_body or any(field.is_required() for field in method.takes.model_fields.values())
    return ... if needed else method.takes()


def _parameter(name: str, kind: Any, default: Any = ...) -> inspect.Parameter:
    given = inspect.Parameter.empty if default is ... else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=given)
