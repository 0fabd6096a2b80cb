"""Tools: functions that a model may call, with a schema from their types, limits and approvals."""

from __future__ import annotations

import inspect
import json
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, overload

from roost.errors import Invalid, ToolFailed

STEP_KEY: ContextVar[str] = ContextVar("roost_step_key", default="")
"""Idempotency key of the current call, while its tool runs."""
LIMIT = 60.0
OUTPUT = 20_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]{0,63}(?:\.[A-Za-z0-9_\-]{1,64})*")


@dataclass(frozen=True, slots=True)
class ClientTool:
    """Tool of a program that uses a model through Roost: the model may call it, and the program runs it."""

    name: str
    description: str
    schema: str
    """JSON schema of its arguments, as JSON."""

    @property
    def wire_name(self) -> str:
        return self.name

    @property
    def parameters(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.schema)
        return found

    @property
    def size(self) -> int:
        """Return the number of characters that describe it to a model."""
        return len(self.name) + len(self.description) + len(self.schema)


class TurnParameter:
    """Base of `Turn`: a parameter of a tool annotated with its direct subclass is given the turn."""

    __slots__ = ()


def _never(turn: Any, arguments: Mapping[str, Any]) -> bool:
    return False


@dataclass(frozen=True, eq=False)
class Tool:
    """Function that a model may call. Created by `roost.tool`, or by an adapter for a tool server."""

    name: str
    description: str
    function: Callable[..., Any]
    limit: float = LIMIT
    """Timeout of a call, in seconds."""
    output: int = OUTPUT
    """Characters of a result that the model gets; longer results are cut, with a remark."""
    approval: bool = False
    """True if each call needs an approval."""
    repeatable: bool = False
    """True if a call may be repeated if its result is unknown."""
    check: Callable[..., Any] | None = None
    """Called with the key of a call whose result is unknown, and the arguments it names; returns the result.

    None: the call was not executed.
    """
    with_turn: Callable[[Any, Mapping[str, Any]], bool] = _never
    """Returns whether all effects of a call with these arguments settle with the turn.

    Then the call runs again when the turn is repeated; results of other calls are reused.
    """

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(str(self.name)):
            raise Invalid(
                f"the tool name {self.name!r:.80} is invalid: use letters, digits, _ and - (and . between parts)"
            )
        for what, value in (("limit", self.limit), ("output", self.output)):
            if type(value) not in (int, float) or not 0 < value < float("inf"):
                raise Invalid(f"the {what} of the tool {self.name!r} must be a number above 0, not {value!r:.40}")

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call the function directly."""
        return self.function(*args, **options)

    @property
    def wire_name(self) -> str:
        """Return the name for providers that allow no dots."""
        return self.name.replace(".", "__")

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """Return the JSON schema of its arguments: an object."""
        schema: dict[str, Any] = self._model.model_json_schema()
        schema.pop("title", None)
        schema.pop("description", None)
        for field in schema.get("properties", {}).values():
            field.pop("title", None)
        schema.setdefault("properties", {})
        return schema

    @cached_property
    def size(self) -> int:
        """Return the number of characters that describe it to a model."""
        return len(self.name) + len(self.description) + len(json.dumps(self.parameters))

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Validate the arguments of a call. Raises ToolFailed with a message that a model can act on."""
        from pydantic import ValidationError

        try:
            model = self._model.model_validate(dict(given))
        except ValidationError as error:
            problems = "; ".join(
                _problem(problem) for problem in error.errors(include_url=False, include_context=False)
            )
            raise ToolFailed(f"the arguments of {self.name} are wrong: {problems}") from None
        return {name: getattr(model, name) for name in type(model).model_fields}

    def bound(self, arguments: Mapping[str, Any], turn: Any) -> dict[str, Any]:
        """Return the arguments, with the turn if the function takes it."""
        return {**arguments, **dict.fromkeys(self._turns, turn)}

    @cached_property
    def is_blocking(self) -> bool:
        return not inspect.iscoroutinefunction(self.function)

    # --- from the function -------------------------------------------------------------------------

    @cached_property
    def _hints(self) -> Mapping[str, Any]:
        try:
            return typing.get_type_hints(self.function, include_extras=True)
        except Exception as error:
            raise Invalid(f"the types of the tool {self.name!r} cannot be read: {error}") from error

    @cached_property
    def _turns(self) -> tuple[str, ...]:
        hints = {name: hint for name, hint in self._hints.items() if name != "return"}
        return tuple(name for name, hint in hints.items() if TurnParameter in getattr(hint, "__bases__", ()))

    @cached_property
    def _model(self) -> Any:
        from pydantic import ConfigDict, create_model
        from pydantic.errors import PydanticUserError

        fields: dict[str, Any] = {}
        for name, parameter in inspect.signature(self.function).parameters.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise Invalid(f"the tool {self.name!r} takes {parameter}: each argument must have a name")
            if name in self._turns:
                continue
            if name not in self._hints:
                raise Invalid(f"the argument {name!r} of the tool {self.name!r} has no type: add an annotation")
            fields[name] = (self._hints[name], ... if parameter.default is parameter.empty else parameter.default)
        try:
            return create_model(
                "Arguments", __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=False), **fields
            )
        except (PydanticUserError, NameError, TypeError) as error:
            raise Invalid(f"the types of the tool {self.name!r} have no schema: {error}") from error


OfferedTool = Tool | ClientTool
"""Tool that a model may call."""


class ToolServer(Protocol):
    """Source of further tools; their names begin with its own. Any loop may call."""

    name: str

    async def tools(self) -> Sequence[Tool]:
        """Return its tools. Raises Unavailable while it cannot be reached."""
        ...

    def close(self) -> None: ...


def _problem(error: Mapping[str, Any]) -> str:
    where = ".".join(str(part) for part in error["loc"])
    return f"{where}: {error['msg']}" if where else str(error["msg"])


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *,
    name: str | None = ...,
    limit: float = ...,
    output: int = ...,
    approval: bool = ...,
    repeatable: bool = ...,
    check: Callable[..., Any] | None = ...,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    limit: float = LIMIT,
    output: int = OUTPUT,
    approval: bool = False,
    repeatable: bool = False,
    check: Callable[..., Any] | None = None,
) -> Any:
    """Create a tool from a function: its types are the schema, its docstring is the description.

    The function may be async, or plain: then each call has its own thread. A parameter annotated with `Turn` gets the
    turn. `approval`: each call needs an approval. `repeatable`: a call whose result is unknown may be repeated;
    otherwise `check`, called with the key of the call, returns its result, or else a person is asked.
    """

    def made(function: Callable[..., Any]) -> Tool:
        if not callable(function):
            raise Invalid(f"a tool must be a function, not {type(function).__name__}")
        named = str(name or getattr(function, "__name__", ""))
        about = inspect.getdoc(function) or ""
        return Tool(named, about, function, limit, output, approval, repeatable, check)

    return made if function is None else made(function)


def as_text(result: Any, name: str) -> str:
    """Return a result for a model: a text as it is, everything else as JSON."""
    if isinstance(result, str):
        return result
    try:
        return json.dumps(result, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        from pydantic_core import PydanticSerializationError, to_json

        try:
            return to_json(result).decode()
        except (PydanticSerializationError, ValueError, RecursionError) as error:
            raise ToolFailed(f"{name} returned {type(result).__name__}, which cannot be written as JSON") from error
