"""Namespaces of the service on the wire: requests and replies of each method, derived from its signature.

A new method needs no further code: route, request, reply and the client's method are built from the coroutine. The
user is never part of a request.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from functools import cache, cached_property, reduce
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Union

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    PlainSerializer,
    PlainValidator,
    Strict,
    TypeAdapter,
    WithJsonSchema,
    create_model,
)
from pydantic.alias_generators import to_camel, to_pascal, to_snake

from roost.core.agents import wake
from roost.core.agents.agent import Subscription
from roost.core.schedules import rules
from roost.core.values import checks
from roost.errors import Invalid

LONGEST_WAIT = 20.0
"""Seconds that one request may wait; clients that want to wait longer repeat it."""
REPEATABLE = frozenset(
    {
        "get",
        "list",
        "find",
        "inspect",
        "history",
        "inbox",
        "thread",
        "unread_count",
        "next_times",
        "get_next_wake_time",
        "wait",
        "read",
        "archive",
        "cancel",
        "pause",
        "resume",
        "start",
        "stop",
        "wake",
        "configure",
        "change",
        "schedule_wake",
        "cancel_wake",
        "set_memory",
        "memories",
        "facts",
        "states",
        "grant",
        "refuse",
        "answer",
        "view",
        "minutes",
    }
)
"""Idempotent methods, which clients may retry. Methods with a `key` are idempotent too; no others are."""


class _Wire(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        frozen=True,
        allow_inf_nan=False,
    )


class _Request(_Wire):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Reply(_Wire):
    model_config = ConfigDict(from_attributes=True)
    made_from: ClassVar[type]


@dataclass(frozen=True)
class Method:
    """Method of a namespace on the wire: `POST /{path}` with an object of its arguments."""

    namespace: str
    name: str
    coroutine: Callable[..., Any]

    @property
    def path(self) -> str:
        return f"{self.namespace}/{self.name}".replace("_", "-")

    @property
    def is_repeatable(self) -> bool:
        return self.name in REPEATABLE or self.has("key")

    def has(self, parameter: str) -> bool:
        return parameter in self._parameters

    @cached_property
    def takes(self) -> type[BaseModel]:
        """Return the strict model of a request: all parameters but the user."""
        fields: dict[str, Any] = {}
        for parameter in list(self._parameters.values())[2:]:
            if parameter.kind is parameter.VAR_KEYWORD:
                fields[parameter.name] = (dict[str, Any], Field(default_factory=dict))
            else:
                default = ... if parameter.default is parameter.empty else parameter.default
                fields[parameter.name] = (wired(self._hints[parameter.name]), default)
        return create_model(to_pascal(f"{self.namespace}_{self.name}"), __base__=_Request, **fields)

    @cached_property
    def gives(self) -> Any:
        """Return the type of a reply."""
        return wired(self._hints["return"])

    def arguments(self, request: BaseModel) -> dict[str, Any]:
        """Return the arguments of a request, without the user; missing ones keep their defaults."""
        given = {name: getattr(request, name) for name in request.model_fields_set}
        if (more := self._more) is None:
            return given
        settings = {to_snake(name): value for name, value in given.pop(more, {}).items()}
        for name in settings.keys() & self._parameters.keys():
            raise Invalid(f"{more} has {name!r}, which is not a setting")
        return given | settings

    def request(self, *args: Any, **options: Any) -> tuple[str, dict[str, Any]]:
        """Return the user and the request body of a call; raise TypeError as the method would."""
        bound = inspect.signature(self.coroutine).bind(None, *args, **options).arguments
        del bound["self"]
        user = bound.pop("user_id")
        body = {name: self._sent(name, value) for name, value in bound.items() if name != self._more}
        if self._more is not None:
            settings = bound.get(self._more, {})
            body[self._more] = {to_camel(name): plain(value) for name, value in settings.items()}
        return user, {to_camel(name): value for name, value in body.items()}

    def result(self, answer: Any) -> Any:
        """Return the result of the method from its reply."""
        return made(self._adapter.validate_python(answer))

    def _sent(self, name: str, value: Any) -> Any:
        return checks.data(value, f"the {name}") if self._hints[name] is Any else plain(value)

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
        if not name.startswith("_") and _takes_the_user(coroutine)
    )


def _takes_the_user(coroutine: Callable[..., Any]) -> bool:
    """Return whether a method is called for a user; global ones, such as metrics, are not."""
    user = inspect.signature(coroutine).parameters.get("user_id")
    return user is not None and user.default is user.empty


# --- types ---------------------------------------------------------------------------------------------


def _moment(value: object) -> object:
    if isinstance(value, str) and len(value) <= checks.NAME_LENGTH:
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            pass  # the original error would repeat the input
    if isinstance(value, datetime):
        return value
    raise ValueError("must be a time in ISO 8601, such as 2030-01-01T09:00:00Z")


def _by_json(read: Callable[[str], Any], write: Callable[[Any], str]) -> Any:
    """Return a type with its own conversion to and from JSON; unreadable input is invalid, None stays None."""
    return Annotated[
        Any,
        PlainValidator(lambda value: read(json.dumps(value)) if isinstance(value, _JSON) else value),
        PlainSerializer(lambda value: json.loads(write(value))),
        WithJsonSchema({"type": "object"}),
    ]


class _FirstMistake(FailFast):
    """Validation that stops at the first wrong entry of a list, instead of describing a hundred thousand."""

    __hash__ = object.__hash__  # FastAPI keeps types in sets


_FIRST_MISTAKE = _FirstMistake()
_JSON = (str, int, float, list, dict)
_MOMENT = Annotated[datetime, BeforeValidator(_moment)]
_DATA = Annotated[Any, PlainSerializer(checks.normalized)]
_MAPPING = Annotated[dict[str, Any], PlainSerializer(checks.normalized)]
"""Free-form data of users and brains. One value that JSON cannot hold must not make a whole list fail."""
_UNIONS: dict[frozenset[Any], Any] = {
    frozenset(typing.get_args(wake.Condition)): _by_json(wake.from_json, wake.to_json),
    frozenset(typing.get_args(rules.Rule)): _by_json(rules.from_json, rules.to_json),
}


def wired(hint: Any) -> Any:
    """Return the type on the wire: dataclasses become models, times are ISO 8601, durations seconds."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, UnionType):
        return _union(frozenset(inner))
    if origin is not None and issubclass(origin, list | tuple | Sequence):
        kept = tuple(one if one is ... else wired(one) for one in inner)
        return Annotated[tuple[kept] if origin is tuple else list[kept], _FIRST_MISTAKE]  # type: ignore[valid-type]
    if origin is not None and issubclass(origin, Mapping):
        return _MAPPING if inner[1] is Any else dict[str, wired(inner[1])]  # type: ignore[misc]
    if inspect.isclass(hint) and dataclasses.is_dataclass(hint):
        return _model(hint)
    if inspect.isclass(hint) and issubclass(hint, Enum):
        return Annotated[hint, Strict(False)]
    return {datetime: _MOMENT, timedelta: float, Any: _DATA}.get(hint, hint)


def _union(inner: frozenset[Any]) -> Any:
    kept: list[Any] = []
    for members, wire in _UNIONS.items():
        if members <= inner:
            inner -= members
            kept.append(wire)
    kept += [wired(one) for one in sorted(inner - {NoneType}, key=str)]
    return reduce(or_, [*kept, None] if NoneType in inner else kept)


@cache
def _model(kind: type) -> type[_Reply]:
    hints = typing.get_type_hints(kind)
    fields: dict[str, Any] = {field.name: (wired(hints[field.name]), ...) for field in dataclasses.fields(kind)}
    model = create_model(f"{kind.__name__}Reply", __base__=_Reply, __doc__=kind.__doc__, **fields)
    model.made_from = kind
    return model


# --- values --------------------------------------------------------------------------------------------


def made(reply: Any) -> Any:
    """Convert a reply on the wire back to the result of the service."""
    if isinstance(reply, _Reply):
        return reply.made_from(**{name: made(value) for name, value in reply})
    if isinstance(reply, list | tuple):
        return type(reply)(made(one) for one in reply)
    if isinstance(reply, dict):
        return {name: made(value) for name, value in reply.items()}
    return reply


def shown(value: Any) -> Any:
    """Convert a result of the service to JSON on the wire."""
    if isinstance(value, list | tuple):
        return [shown(one) for one in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _model(type(value)).model_validate(value).model_dump(mode="json")
    return TypeAdapter(Any).dump_python(value, mode="json")


def plain(value: Any) -> Any:
    """Convert an argument to JSON; raise Invalid if JSON cannot hold it."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, wake.Condition):
        return json.loads(wake.to_json(wake.check(value)))
    if isinstance(value, Subscription):
        return {"event": value.pattern, "fields": checks.data(dict(value.fields), "the fields")}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(one) for one in value]
    return checks.data(value, "what is sent")
