"""Namespaces of the service on the wire: requests and replies of each method, derived from its signature.

A new method needs no further code: route, request, reply and the client's method are built from the coroutine, and from
the traits that are declared at it (`core.values.traits`). Routes that do not follow from a name are declared in
`routes`. The user is never part of a request.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Annotated, Any
from urllib.parse import quote

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, create_model
from pydantic.alias_generators import to_camel, to_pascal, to_snake

from roost.core.talks.messages import MOST
from roost.core.values import checks
from roost.core.values.traits import ReplyField, is_idempotent, only_reads
from roost.errors import Invalid
from roost.protocol.routes import NESTED, NestedRoute, Route, cursor_of, place_of, route_of
from roost.protocol.values import Reply, Request, made, plain, wired

LONGEST_WAIT = 20.0
"""Seconds that one request may wait; clients that want to wait longer repeat it."""
BINARY = frozenset({"add_attachment", "get_attachment", "open_attachment"})
"""Methods whose request or reply is a file and not JSON: their routes and client methods are written by hand."""


@dataclass(frozen=True)
class Method:
    """Method of a namespace on the wire, by its route."""

    namespace: str
    name: str
    coroutine: Callable[..., Any]

    @property
    def full_name(self) -> str:
        return f"{self.namespace}.{self.name}"

    @cached_property
    def route(self) -> Route:
        returned = typing.get_type_hints(self.coroutine, include_extras=True)["return"]
        field = next((one for one in getattr(returned, "__metadata__", ()) if isinstance(one, ReplyField)), None)
        return route_of(self.namespace, self.name, self._parameters, reads=self.only_reads, result=field)

    @property
    def only_reads(self) -> bool:
        return only_reads(self.coroutine)

    @property
    def nested(self) -> tuple[NestedRoute, ...]:
        """Return further routes, below one agent or one talk."""
        return NESTED.get(self.full_name, ())

    @property
    def path(self) -> str:
        return self.route.path

    @property
    def scope(self) -> str:
        """Return the scope that a token needs for this method: `agents:read`."""
        noun = "agents" if self.namespace == "sleep_scheduler" else self.namespace
        return f"{noun}:{'read' if self.route.verb == 'GET' or self.only_reads else 'write'}"

    @property
    def requires_admin(self) -> bool:
        """Return whether only admins and the operator may call this method."""
        return self.namespace in ("users", "nodes")

    @property
    def is_repeatable(self) -> bool:
        """Return whether clients may repeat the method after a lost reply."""
        declared = self.only_reads or is_idempotent(self.coroutine)
        return declared or self.route.verb != "POST" or self.has("key")

    def has(self, parameter: str) -> bool:
        return parameter in self._parameters

    @cached_property
    def fields(self) -> dict[str, tuple[Any, Any]]:
        """Return type and default of each argument outside of the path; the user is no argument."""
        fields: dict[str, tuple[Any, Any]] = {}
        for parameter in list(self._parameters.values())[2:]:
            if parameter.kind is parameter.VAR_KEYWORD:
                fields[parameter.name] = (dict[str, Any], Field(default_factory=dict))
            elif parameter.name != self.route.argument:
                default = ... if parameter.default is parameter.empty else parameter.default
                fields[parameter.name] = (self._wired(parameter.name), default)
        return fields

    @cached_property
    def takes(self) -> type[BaseModel]:
        """Return the strict model of a body."""
        name = self.route.request or to_pascal(f"{self.namespace}_{self.name}")
        fields: dict[str, Any] = dict(self.fields)
        return create_model(name, __base__=Request, **fields)

    def takes_without(self, argument: str) -> type[BaseModel]:
        """Return the strict model of a body without an argument, which is in the path."""
        fields: dict[str, Any] = {name: kind for name, kind in self.fields.items() if name != argument}
        return create_model(to_pascal(f"{self.namespace}_{self.name}_nested"), __base__=Request, **fields)

    @cached_property
    def params(self) -> type[BaseModel]:
        """Return the strict model of all arguments, for protocols without paths."""
        placed: dict[str, Any] = {self.route.argument: (str, ...)} if self.route.argument else {}
        fields: dict[str, Any] = placed | self.fields
        return create_model(to_pascal(f"{self.namespace}_{self.name}_params"), __base__=Request, **fields)

    @cached_property
    def gives(self) -> Any:
        """Return the type of the result."""
        return wired(self._hints["return"])

    @property
    def shows(self) -> Any:
        """Return the type of what users get: the result, or the thing whose id is the result."""
        return self.gives if self.route.shown_as is None else self.route.shown_as

    @property
    def is_list(self) -> bool:
        return typing.get_origin(self._hints["return"]) is list

    @cached_property
    def replies(self) -> Any:
        """Return the type of a reply: an object, also for a list or a single value."""
        name = to_pascal(f"{self.namespace}_{self.name}_reply")
        if self.is_list:
            following: Any = (str | None, None)
            return create_model(name, __base__=Reply, items=(self.gives, ...), next=following)
        if self.route.result and not self.route.shown_by:
            result: dict[str, Any] = {self.route.result: (self.gives, ...)}
            return create_model(name, __base__=Reply, **result)
        return self.shows

    def reply(self, found: Any, following: str | None = None) -> Any:
        """Return the reply with a result; `following` is the URL of the next page."""
        if self.is_list:
            return {"items": found, "next": following}
        return {self.route.result: found} if self.route.result and not self.route.shown_by else found

    def page_limit(self, arguments: Mapping[str, Any]) -> int | None:
        """Return the number of items of a page, if the result is one page of a longer list."""
        if not self.is_list or self._cursor is None:
            return None
        limit: int = arguments.get("limit", self.fields["limit"][1])
        return limit if 0 < limit < MOST else None

    def next_page(self, items: Sequence[Any]) -> dict[str, str]:
        """Return the argument that reads the page after these items."""
        return {str(self._cursor): str(getattr(items[-1], cursor_of(self.namespace, self.name)))}

    @property
    def _cursor(self) -> str | None:
        """Return the argument by which the next page is read."""
        return next((name for name in ("after", "before") if self.has(name)), None)

    def arguments(self, request: BaseModel) -> dict[str, Any]:
        """Return the arguments of a request, without the user; missing ones keep their defaults."""
        given = {name: _unwrapped(getattr(request, name)) for name in request.model_fields_set}
        if (more := self._more) is None:
            return given
        settings = {to_snake(name): value for name, value in given.pop(more, {}).items()}
        for name in settings.keys() & self._parameters.keys():
            raise Invalid(f"{more} has {name!r}, which is not a setting")
        return given | settings

    def request(self, *args: Any, **options: Any) -> tuple[str, dict[str, Any]]:
        """Return the user and the other arguments of a call; raise TypeError as the method would."""
        bound = inspect.signature(self.coroutine).bind(None, *args, **options).arguments
        del bound["self"]
        user = bound.pop("user_id")
        body = {name: self._sent(name, value) for name, value in bound.items() if name != self._more}
        if self._more is not None:
            settings = bound.get(self._more, {})
            body[self._more] = {to_camel(name): plain(value) for name, value in settings.items()}
        return user, {to_camel(name): value for name, value in body.items()}

    def placed(self, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any], dict[str, Any] | None]:
        """Return the path, the query and the body of a request with these arguments."""
        path, given = self.route.path, dict(arguments)
        if argument := self.route.argument:
            value = checks.name(given.pop(to_camel(argument)), f"the {argument.replace('_', ' ')}")
            path = path.replace(f"{{{place_of(argument)}}}", quote(value, safe=""))
        return (path, {}, given) if self.route.has_body else (path, self._query(given), None)

    def _query(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a query, checked here: in a URL, every value is a text."""
        try:
            self.takes.model_validate(given)
        except ValidationError as error:
            [first, *_] = error.errors()
            place = ".".join(str(part) for part in first["loc"][:1])
            raise Invalid(f"{place}: {first['msg'].replace('Input should be', 'must be')}") from None
        return given

    def result(self, answer: Any, user_id: str) -> Any:
        """Return the result of the method from the reply to a user."""
        found = answer["items"] if self.is_list else answer[self.route.result] if self.route.result else answer
        return made(self._adapter.validate_python(found), user_id)

    def _sent(self, name: str, value: Any) -> Any:
        most = self.route.most.get(name)
        if most is not None and isinstance(value, int | float):
            return min(value, most)
        return checks.data(value, f"the {name}") if self._hints[name] is Any else plain(value)

    def _wired(self, name: str) -> Any:
        kind = self.route.types.get(name) or wired(self._hints[name])
        most = self.route.most.get(name)
        return kind if most is None else Annotated[kind, Field(ge=0, le=most)]

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.gives)

    @cached_property
    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self.coroutine).parameters

    @cached_property
    def _hints(self) -> Mapping[str, Any]:
        return typing.get_type_hints(self.coroutine)

    @cached_property
    def _more(self) -> str | None:
        """Return the name of the `**options` parameter, if the method has one."""
        return next((p.name for p in self._parameters.values() if p.kind is p.VAR_KEYWORD), None)


@cache
def methods(namespace: str, kind: type) -> tuple[Method, ...]:
    """Return the methods open to users: the public coroutines of a namespace that take the user first."""
    found = inspect.getmembers(kind, inspect.iscoroutinefunction)
    return tuple(
        Method(namespace, name, coroutine)
        for name, coroutine in found
        if not name.startswith("_") and name not in BINARY and _takes_the_user(coroutine)
    )


def _unwrapped(value: Any) -> Any:
    return value.model_dump(by_alias=False) if isinstance(value, Request) else value


def _takes_the_user(coroutine: Callable[..., Any]) -> bool:
    """Return whether a method is called for a user; global ones, such as metrics, are not."""
    user = inspect.signature(coroutine).parameters.get("user_id")
    return user is not None and user.default is user.empty
