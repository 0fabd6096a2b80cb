"""Request bodies: their shape is checked on the raw bytes, before they are parsed.

Parsing and validation cost time and memory per value, not per byte. A body of many small values stalls every
other request. It is rejected by counting its punctuation, which takes milliseconds.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect

from roost.api.error_responses import HttpError
from roost.core.values.checks import DEEPEST

MOST_VALUES = 100_000
"""Values in one body: strings, numbers, lists and objects, at any depth."""
MOST_FIELDS = 100
"""Fields at the top level of a body; no request has that many."""
MOST_INNER_FIELDS = 10_000
"""Fields of a nested object."""
LARGE = 256 * 1024
"""Bytes; larger bodies are checked and parsed on a thread."""
LEVELS = DEEPEST + 4
"""Nesting of a body: data may be nested `DEEPEST` levels deep, inside the request's own levels."""

_PUNCTUATION = re.compile(rb"[\[\]{},]")


class BodyRoute(APIRoute):
    """Route that rejects bodies of an unreasonable shape, and parses large ones off the loop."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        if self.body_field is None:
            return handle

        async def checked(request: Request) -> Response:
            try:
                body = await request.body()
            except ClientDisconnect:
                return Response(status_code=400)  # the client is gone
            if len(body) >= LARGE and _is_json(request):
                # `request.json()` caches its result in the same attribute.
                request._json = await asyncio.to_thread(parsed, body)
            else:
                check(body)
            return await handle(request)

        return checked


def _is_json(request: Request) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


def parsed(body: bytes) -> Any:
    """Return the JSON value of a body; raise HttpError if it is invalid."""
    check(body)
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise HttpError(422, "invalid", "the body must be a JSON object in UTF-8") from None


def check(body: bytes) -> None:
    """Raise HttpError if the body has too many values or fields, is nested too deep or is not UTF-8.

    Text that is not JSON passes: the parser reports it.
    """
    _check(body, LEVELS, MOST_FIELDS)


def check_message(text: bytes) -> None:
    """Raise HttpError if a message of JSON-RPC has too many values, or is nested too deep."""
    _check(text, LEVELS + 2, MOST_VALUES)  # a list of requests, each with parameters


def _check(body: bytes, levels: int, most_fields: int) -> None:
    if b"\0" in body:  # part of every punctuation character in UTF-16 and UTF-32
        raise HttpError(422, "invalid", "the body must be a JSON object in UTF-8, without the character NUL")
    openings = body.count(b"[") + body.count(b"{")
    if openings <= levels and openings + body.count(b",") <= most_fields:
        return  # few values, even if all punctuation is outside of strings
    outside = _outside_of_texts(body)
    if outside.count(b"[") + outside.count(b"{") + outside.count(b",") > MOST_VALUES:
        raise _too_many(MOST_VALUES, "values")
    _check_levels(outside, levels, most_fields)


def _outside_of_texts(body: bytes) -> bytes:
    """Return the body without its strings. An escaped quote does not end a string, so escapes are removed first."""
    plain = body.replace(rb"\\", b"").replace(rb"\"", b"")
    if plain.count(b'"') > 4 * MOST_VALUES:  # two for each key and each value
        raise _too_many(MOST_VALUES, "values")
    return b"".join(plain.split(b'"')[::2])


def _check_levels(outside: bytes, levels: int, most_fields: int) -> None:
    """Raise HttpError if nesting is too deep or an object has too many fields."""
    open_ones: list[list[int]] = []
    """Remaining entries of each enclosing list and object."""
    for found in _PUNCTUATION.finditer(outside):
        sign = found[0]
        if sign == b"," and open_ones:
            open_ones[-1][0] -= 1
            if open_ones[-1][0] < 1:
                raise _too_many(most_fields if len(open_ones) == 1 else MOST_INNER_FIELDS, "fields")
        elif sign in b"[{":
            if len(open_ones) == levels:
                raise HttpError(422, "invalid", f"the body must be a JSON object, at most {DEEPEST} levels deep")
            inner = MOST_INNER_FIELDS if sign == b"{" else MOST_VALUES
            open_ones.append([inner if open_ones else most_fields])
        elif open_ones:
            open_ones.pop()


def _too_many(most: int, what: str) -> HttpError:
    return HttpError(422, "invalid", f"the body has too many {what}: the limit is {most:,}; send several requests")
