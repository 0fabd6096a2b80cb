"""The faces of the service on the wire: what each method takes and gives, taken from its own signature.

So there is nothing to write, and nothing to forget, for a new method: a route, a request, a reply and the client's
method are made from the coroutine. The user is never part of a request.
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
    Field,
    PlainSerializer,
    PlainValidator,
    Strict,
    TypeAdapter,
    WithJsonSchema,
    create_model,
)
from pydantic.alias_generators import to_camel, to_pascal, to_snake

from roost.core import checks, schedules, wake
from roost.core.agents import Subscription
from roost.errors import Invalid

LONGEST_WAIT = 20.0
"""So many seconds a request may wait; whoever wants to wait longer asks again."""
REPEATABLE = frozenset(
    {
        "get", "list", "find", "inspect", "history", "inbox", "thread", "unread_count", "next_times",
        "get_next_wake_time", "wait", "read", "archive", "cancel", "pause", "resume", "start", "stop", "wake",
        "configure", "change", "schedule_wake", "cancel_wake", "set_memory", "memories", "facts", "states", "grant",
        "refuse", "answer", "view", "minutes",
    }
)  # fmt: skip
"""Methods that may reach the server twice and are done once; and all that take a `key`. No others are."""


class _Wire(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, serialize_by_alias=True, frozen=True,
        allow_inf_nan=False,
    )  # fmt: skip


class _Request(_Wire):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Reply(_Wire):
    model_config = ConfigDict(from_attributes=True)
    made_from: ClassVar[type]


@dataclass(frozen=True)
class Method:
    """One method of a face, as it is asked for: `POST /{path}` with an object of its arguments."""

    face: str
    name: str
    coroutine: Callable[..., Any]

    @property
    def path(self) -> str:
        return f"{self.face}/{self.name}".replace("_", "-")

    @property
    def is_repeatable(self) -> bool:
        return self.name in REPEATABLE or self.has("key")

    def has(self, parameter: str) -> bool:
        return parameter in self._parameters

    @cached_property
    def takes(self) -> type[BaseModel]:
        """The model of a request: strict, and all there is in the signature but the user."""
        fields: dict[str, Any] = {}
        for parameter in list(self._parameters.values())[2:]:
            if parameter.kind is parameter.VAR_KEYWORD:
                fields[parameter.name] = (dict[str, Any], Field(default_factory=dict))
            else:
                default = ... if parameter.default is parameter.empty else parameter.default
                fields[parameter.name] = (wired(self._hints[parameter.name]), default)
        return create_model(to_pascal(f"{self.face}_{self.name}"), __base__=_Request, **fields)

    @cached_property
    def gives(self) -> Any:
        """The type of a reply."""
        return wired(self._hints["return"])

    def arguments(self, request: BaseModel) -> dict[str, Any]:
        """What to call the method with, beside the user; what was not given is left to the method."""
        given = {name: getattr(request, name) for name in request.model_fields_set}
        if (more := self._more) is None:
            return given
        settings = {to_snake(name): value for name, value in given.pop(more, {}).items()}
        for name in settings.keys() & self._parameters.keys():
            raise Invalid(f"{more} has {name!r}, which is no setting")
        return given | settings

    def request(self, *args: Any, **options: Any) -> tuple[str, dict[str, Any]]:
        """The user, and the body of the request, for a call of the method; TypeError as the method would raise it."""
        bound = inspect.signature(self.coroutine).bind(None, *args, **options).arguments
        del bound["self"]
        user = bound.pop("user_id")
        body = {name: self._sent(name, value) for name, value in bound.items() if name != self._more}
        if self._more is not None:
            settings = bound.get(self._more, {})
            body[self._more] = {to_camel(name): plain(value) for name, value in settings.items()}
        return user, {to_camel(name): value for name, value in body.items()}

    def result(self, answer: Any) -> Any:
        """What the method gave, from its reply."""
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
        """The name under which further options come, if the method takes such."""
        return next((p.name for p in self._parameters.values() if p.kind is p.VAR_KEYWORD), None)


@cache
def methods(face: str, kind: type) -> tuple[Method, ...]:
    """All that can be asked for by its user: the public coroutines of a face that take the user first."""
    found = inspect.getmembers(kind, inspect.iscoroutinefunction)
    return tuple(
        Method(face, name, coroutine)
        for name, coroutine in found
        if not name.startswith("_") and _takes_the_user(coroutine)
    )


def _takes_the_user(coroutine: Callable[..., Any]) -> bool:
    """What is the same for everyone, such as the numbers, may be asked for without one."""
    user = inspect.signature(coroutine).parameters.get("user_id")
    return user is not None and user.default is user.empty


# --- types ---------------------------------------------------------------------------------------------


def _moment(value: object) -> object:
    if isinstance(value, str) and len(value) <= checks.NAME_LENGTH:
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            pass  # it would repeat what was sent
    if isinstance(value, datetime):
        return value
    raise ValueError("must be a time in ISO 8601, such as 2030-01-01T09:00:00Z")


def _by_json(read: Callable[[str], Any], write: Callable[[Any], str]) -> Any:
    """What has its own way to and from JSON; what cannot be read is Invalid, and nothing stays nothing."""
    return Annotated[
        Any,
        PlainValidator(lambda value: read(json.dumps(value)) if isinstance(value, _JSON) else value),
        PlainSerializer(lambda value: json.loads(write(value))),
        WithJsonSchema({"type": "object"}),
    ]


_JSON = (str, int, float, list, dict)
_MOMENT = Annotated[datetime, BeforeValidator(_moment)]
_DATA = Annotated[Any, PlainSerializer(checks.tame)]
_MAPPING = Annotated[dict[str, Any], PlainSerializer(checks.tame)]
"""What people and brains wrote. One thing that cannot be sent must not keep all others of its list from being sent."""
_UNIONS: dict[frozenset[Any], Any] = {
    frozenset(typing.get_args(wake.Condition)): _by_json(wake.from_json, wake.to_json),
    frozenset(typing.get_args(schedules.Rule)): _by_json(schedules.from_json, schedules.to_json),
}


def wired(hint: Any) -> Any:
    """The type on the wire: dataclasses become models, times are ISO 8601, durations seconds."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, UnionType):
        return _union(frozenset(inner))
    if origin is not None and issubclass(origin, list | tuple | Sequence):
        kept = tuple(one if one is ... else wired(one) for one in inner)
        return tuple[kept] if origin is tuple else list[kept]  # type: ignore[valid-type]
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
    """What the service gave, from what was made of it for the wire."""
    if isinstance(reply, _Reply):
        return reply.made_from(**{name: made(value) for name, value in reply})
    if isinstance(reply, list | tuple):
        return type(reply)(made(one) for one in reply)
    if isinstance(reply, dict):
        return {name: made(value) for name, value in reply.items()}
    return reply


def shown(value: Any) -> Any:
    """What the service gave, as JSON has it on the wire."""
    if isinstance(value, list | tuple):
        return [shown(one) for one in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _model(type(value)).model_validate(value).model_dump(mode="json")
    return TypeAdapter(Any).dump_python(value, mode="json")


def plain(value: Any) -> Any:
    """An argument as JSON has it; Invalid if JSON cannot hold it."""
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
