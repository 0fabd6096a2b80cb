"""JSON-RPC 2.0: requests as they are received, and replies to them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, NoReturn

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
CANCELLED = -32800
"""Code of a request that its caller has cancelled; like all codes of Roost it is outside of the reserved range."""
MOST_CALLS = 100
"""Most requests in one batch."""

Id = str | int | float | None


class RpcError(Exception):
    """Error with a code of the standard."""

    def __init__(self, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def as_json(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message, **({"data": self.data} if self.data else {})}


@dataclass(frozen=True, slots=True)
class RpcCall:
    """Request, or with `is_notification` one that is not answered."""

    method: str
    params: dict[str, Any] | list[Any] = field(default_factory=dict)
    id: Id = None
    is_notification: bool = False


@dataclass(frozen=True, slots=True)
class RpcRefusal:
    """Entry of a message that is no request; its error is the reply."""

    error: RpcError
    id: Id = None


def parse(text: str) -> tuple[list[RpcCall | RpcRefusal], bool]:
    """Return the requests of a message, and whether it is a batch. Raise RpcError if it has none at all."""
    try:
        message = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise RpcError(PARSE_ERROR, "the message must be JSON, and not too deep") from None
    if not isinstance(message, list):
        return [_entry(message)], False
    if not message:
        raise RpcError(INVALID_REQUEST, "the batch is empty")
    if len(message) > MOST_CALLS:
        raise RpcError(INVALID_REQUEST, f"the batch has {len(message):,} requests: send at most {MOST_CALLS}")
    return [_entry(one) for one in message], True


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _entry(one: Any) -> RpcCall | RpcRefusal:
    if not isinstance(one, dict):
        return RpcRefusal(RpcError(INVALID_REQUEST, "a request must be an object"))
    given = one.get("id")
    is_id = given is None or (isinstance(given, str | int | float) and not isinstance(given, bool))
    if not is_id:
        return RpcRefusal(RpcError(INVALID_REQUEST, "`id` must be a string or a number"))
    if one.get("jsonrpc") != "2.0":
        return RpcRefusal(RpcError(INVALID_REQUEST, '`jsonrpc` must be "2.0"'), given)
    method, params = one.get("method"), one.get("params", {})
    if not isinstance(method, str):
        return RpcRefusal(RpcError(INVALID_REQUEST, "`method` must be a string"), given)
    if not isinstance(params, dict | list):
        return RpcRefusal(RpcError(INVALID_REQUEST, "`params` must be an object or an array"), given)
    return RpcCall(method, params, given, "id" not in one)


def reply(call_id: Id, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call_id, "result": result}


def error_reply(call_id: Id, error: RpcError) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call_id, "error": error.as_json()}


def notification(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}
