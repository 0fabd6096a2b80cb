"""Values on the wire: dataclasses as models, arguments and results as JSON and back."""

from __future__ import annotations

import dataclasses
import inspect
import json
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from functools import cache, reduce
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Union

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    PlainSerializer,
    PlainValidator,
    Strict,
    TypeAdapter,
    WithJsonSchema,
    create_model,
)
from pydantic.alias_generators import to_camel

from roost.core.agents import wake
from roost.core.agents.agent import Subscription
from roost.core.schedules import rules
from roost.core.talks.messages import Message, Sender
from roost.core.talks.talk import Talk
from roost.core.values import checks


class Wire(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        frozen=True,
        allow_inf_nan=False,
    )


class Request(Wire):
    # Strict, so that a number in place of a string is rejected and not converted.
    model_config = ConfigDict(extra="forbid", strict=True)


class Reply(Wire):
    model_config = ConfigDict(from_attributes=True)
    made_from: ClassVar[type]


# --- types ---------------------------------------------------------------------------------------------


def _moment(value: object) -> object:
    if isinstance(value, datetime):
        return value
    if isinstance(value, str) and len(value) <= checks.NAME_LENGTH:
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            pass  # the original error would repeat the input
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
Moment = Annotated[datetime, BeforeValidator(_moment)]
_DATA = Annotated[Any, PlainSerializer(checks.normalized)]
_MAPPING = Annotated[
    dict[str, Any], PlainSerializer(checks.normalized), WithJsonSchema({"type": "object", "additionalProperties": True})
]
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
    return {datetime: Moment, timedelta: float, Any: _DATA}.get(hint, hint)


def _union(inner: frozenset[Any]) -> Any:
    kept: list[Any] = []
    for members, wire in _UNIONS.items():
        if members <= inner:
            inner -= members
            kept.append(wire)
    kept += [wired(one) for one in sorted(inner - {NoneType}, key=str)]
    return reduce(or_, [*kept, None] if NoneType in inner else kept)


_WITHOUT_USER = frozenset({Talk})
"""Results whose replies leave out the user: it is the one who sent the request."""
_NARROWER: dict[type, dict[str, Any]] = {Message: {"sender": Sender}}
"""Fields with fewer values on the wire than elsewhere: in a talk the sender of a message is no address."""


@cache
def _model(kind: type) -> type[Reply]:
    hints = typing.get_type_hints(kind) | _NARROWER.get(kind, {})
    names = [field.name for field in dataclasses.fields(kind)]
    if kind in _WITHOUT_USER:
        names.remove("user_id")
    fields: dict[str, Any] = {name: (wired(hints[name]), ...) for name in names}
    model = create_model(f"{kind.__name__}Reply", __base__=Reply, __doc__=kind.__doc__, **fields)
    model.made_from = kind
    return model


# --- values --------------------------------------------------------------------------------------------


def made(reply: Any, user_id: str) -> Any:
    """Convert a reply to a user back to the result of the service."""
    if isinstance(reply, Reply):
        fields = {name: made(value, user_id) for name, value in reply}
        if reply.made_from in _WITHOUT_USER:
            fields["user_id"] = user_id
        return reply.made_from(**fields)
    if isinstance(reply, list | tuple):
        return type(reply)(made(one, user_id) for one in reply)
    if isinstance(reply, dict):
        return {name: made(value, user_id) for name, value in reply.items()}
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
