"""Routes of all namespaces: one per method, built from its signature, and a second one below an agent or a talk.

They are the same for every application, which names its endpoints and its identity in its state.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Path, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from roost.api.auth import Identity
from roost.api.endpoints import Endpoint
from roost.api.routes.dependencies import SignedIn, caller_of, while_connected
from roost.errors import Invalid
from roost.protocol.examples import example_of
from roost.protocol.namespaces import Method, methods
from roost.protocol.routes import NestedRoute, place_of
from roost.sync import HANDLERS

IDEMPOTENCY_KEY = "idempotency-key"


def bind(app: FastAPI, endpoints: Iterable[Endpoint], identity: Identity) -> None:
    """Name the endpoints that the routes of an application call."""
    app.state.endpoints = {endpoint.method.full_name: endpoint for endpoint in endpoints}
    app.state.identity = identity


def add(api: APIRouter) -> None:
    """Add the routes of each method, for the authenticated user."""
    served = [one for name, kind in HANDLERS.items() for one in methods(name, kind) if not one.route.served_by]
    # The first route that matches is taken: `mail/unread-count` before `mail/{mail_id}`.
    for method in sorted(served, key=lambda one: bool(one.route.argument)):
        for nested in (None, *method.nested):
            _RestRoute(method, nested).add(api)


@dataclass(frozen=True, slots=True)
class _RestRoute:
    """Route of a method, or another one below an agent or a talk."""

    method: Method
    nested: NestedRoute | None

    def add(self, api: APIRouter) -> None:
        method, route = self.method, self.method.route

        async def answer(request: Request, user: str, body: BaseModel | None = None, **given: Any) -> Any:
            _check_query(request, self._queried)
            agent = given.get("agent_id") if self.nested else None
            arguments = self._arguments(request, given if body is None else given | method.arguments(body))
            endpoint: Endpoint = request.app.state.endpoints[method.full_name]
            caller = caller_of(request, user, request.app.state.identity)
            limit = method.page_limit(arguments)
            asked = arguments if limit is None else arguments | {"limit": limit + 1}  # to know whether more follow
            called = endpoint.call(caller, asked, agent=agent)
            found = await (while_connected(request, called) if endpoint.is_long else called)
            if isinstance(found, Response):
                return found
            if limit is None or len(found) <= limit:
                return method.reply(found)
            return method.reply(found[:limit], _following(request, method.next_page(found[:limit])))

        answer.__signature__ = inspect.Signature(self._parameters())  # type: ignore[attr-defined]
        nothing: dict[str, Any] = {"response_class": Response} if method.gives is type(None) else {}
        api.add_api_route(
            f"/{self.nested.path(route) if self.nested else route.path}",
            answer,
            methods=[route.verb],
            status_code=204 if nothing else route.status,
            response_model=None if nothing else method.replies,
            description=inspect.getdoc(method.coroutine),
            openapi_extra=self._example(),
            **self._naming(),
            **nothing,
        )

    def _example(self) -> dict[str, Any] | None:
        """Return an example of the body for OpenAPI."""
        example = example_of(self.method)
        if example is None:
            return None
        placed = to_camel(self.nested.argument) if self.nested else None
        shown = {name: value for name, value in example.items() if name != placed}
        return {"requestBody": {"content": {"application/json": {"example": shown}}}}

    def _naming(self) -> dict[str, Any]:
        """Return the names of the route in OpenAPI."""
        method = self.method
        if method.route.name:
            return {"name": method.route.name, "tags": [method.namespace]}
        suffix = f"_of_{self.nested.parent.removesuffix('s')}" if self.nested else ""
        operation = method.full_name.replace(".", "_") + suffix
        return {"name": method.full_name, "operation_id": operation, "tags": [method.namespace]}

    @property
    def _fields(self) -> Mapping[str, tuple[Any, Any]]:
        """Return type and default of the arguments outside of the path."""
        placed = self.nested.argument if self.nested else None
        return {name: kind for name, kind in self.method.fields.items() if name != placed}

    @property
    def _queried(self) -> Mapping[str, tuple[Any, Any]]:
        return {} if self.method.route.has_body else self._fields

    def _arguments(self, request: Request, given: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of the call; one may be in the path, and the key in a header."""
        if self.nested:
            given[self.nested.argument] = f"{self.nested.prefix}{given.pop(self.nested.place)}"
        key = request.headers.get(IDEMPOTENCY_KEY)
        if key is None or given.get("key") is not None:
            return given
        method = self.method
        if not method.has("key") and not method.is_repeatable:
            raise Invalid("this request cannot have an `Idempotency-Key`: send it without one")
        return given | {"key": key} if method.has("key") else given

    def _parameters(self) -> list[inspect.Parameter]:
        """Return the parameters for FastAPI."""
        method, nested = self.method, self.nested
        parameters = [_parameter("request", Request), _parameter("user", SignedIn)]
        if argument := method.route.argument:
            parameters.append(_parameter(argument, Annotated[str, Path(alias=place_of(argument))]))
        if nested:
            parameters.append(_parameter(nested.place, Annotated[str, Path()]))
        if method.route.has_body:
            model = method.takes_without(nested.argument) if nested else method.takes
            parameters.append(_parameter("body", model, _default_body(method, model)))
        for name, (kind, default) in self._queried.items():
            parameters.append(_parameter(name, Annotated[kind, Query(alias=to_camel(name))], default))
        return parameters


def _check_query(request: Request, known: Iterable[str]) -> None:
    names = [to_camel(name) for name in known]
    if unknown := next((name for name in request.query_params if name not in names), None):
        raise Invalid(f"{unknown:.80}: unknown parameter{', use ' + ' or '.join(names) if names else ''}")


def _following(request: Request, page: Mapping[str, str]) -> str:
    """Return the URL of the next page."""
    url = request.url.include_query_params(**page)
    return f"{url.path}?{url.query}"


def _default_body(method: Method, model: type[BaseModel]) -> Any:
    """Return the body of a request without one: where no argument is required, it may be omitted."""
    needed = method.route.needs_body or any(field.is_required() for field in model.model_fields.values())
    return ... if needed else model()


def _parameter(name: str, kind: Any, default: Any = ...) -> inspect.Parameter:
    given = inspect.Parameter.empty if default is ... else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=given)
