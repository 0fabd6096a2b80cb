"""Methods of JSON-RPC by name: `noun.verb` for each method of the service, and those of `agent_control`."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel

from roost.api.endpoints import Caller, Endpoint
from roost.api.error_responses import STATUS, refusals
from roost.errors import Invalid, RoostError, public
from roost.protocol.errors import code_of
from roost.protocol.namespaces import Method
from roost.protocol.rpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RpcError

log = logging.getLogger("roost.api.rpc")

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class RpcMethod:
    """Method with the model of its parameters; `call` returns JSON."""

    params: type[BaseModel]
    call: Callable[[Caller, Any], Awaitable[Any]]
    scope: str
    """Scope that a token needs."""


def rpc_name(method: Method) -> str:
    """Return the name of a method: `talk.addMessage`, `deadLetter.retry`."""
    return f"{to_camel(method.namespace.removesuffix('s'))}.{to_camel(method.name)}"


def of_endpoints(endpoints: Iterable[Endpoint]) -> dict[str, RpcMethod]:
    """Return the methods of the service by their names."""
    return {rpc_name(one.method): RpcMethod(one.method.params, _caller_of(one), one.method.scope) for one in endpoints}


def _caller_of(endpoint: Endpoint) -> Callable[[Caller, BaseModel], Awaitable[Any]]:
    async def call(caller: Caller, params: BaseModel) -> Any:
        return endpoint.as_json(await endpoint.call(caller, endpoint.method.arguments(params)))

    return call


class RpcMethods:
    """All methods by name."""

    def __init__(self, methods: dict[str, RpcMethod]) -> None:
        self._methods = methods
        self._plain = {_plain(name): name for name in methods}

    async def call(self, caller: Caller, name: str, params: dict[str, Any] | list[Any]) -> Any:
        """Call a method; return its result as JSON."""
        method = self._methods.get(name)
        if method is None:
            raise RpcError(METHOD_NOT_FOUND, f"no such method: {self._advice(name)}see /docs/reference/json-rpc")
        caller.require(method.scope)
        return await method.call(caller, validated(method.params, params))

    def _advice(self, name: str) -> str:
        """Return the method that was probably meant: clients call `agents.list`, JSON-RPC calls `agent.list`."""
        meant = self._plain.get(_plain(name))
        return f"did you mean {meant!r}? Otherwise " if meant else ""


def _plain(name: str) -> str:
    """Return a name in lower case, without underscores and the plural of its noun."""
    noun, _, verb = name.lower().replace("_", "").partition(".")
    return f"{noun.removesuffix('s')}.{verb}"


def validated(model: type[M], params: dict[str, Any] | list[Any]) -> M:
    """Return the parameters, given by name or by position. Raise RpcError if they do not fit."""
    names = list(model.model_fields)
    if isinstance(params, list) and len(params) > len(names):
        raise RpcError(INVALID_PARAMS, f"too many parameters: at most {len(names)}", {"code": code_of(Invalid)})
    given = dict(zip(names, params, strict=False)) if isinstance(params, list) else params
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise RpcError(INVALID_PARAMS, refusals(error.errors()), {"code": code_of(Invalid)}) from None


def as_rpc_error(error: Exception, *, is_operator: bool) -> RpcError:
    """Return the error for the caller; for an unexpected one it holds only a reference to the log."""
    for kind, status in STATUS.items():
        if isinstance(error, kind):
            code = INVALID_PARAMS if kind is Invalid else status
            assert isinstance(error, RoostError)
            return RpcError(code, str(error) if is_operator else public(error), {"code": code_of(kind)})
    reference = secrets.token_hex(4).upper()
    log.error("request failed", exc_info=error, extra={"reference": reference, "error_type": type(error).__name__})
    message = f"Internal error; try again, or look up {reference} in the log."
    return RpcError(INTERNAL_ERROR, message, {"code": "internal", "reference": reference})
