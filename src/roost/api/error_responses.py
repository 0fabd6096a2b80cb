"""Mapping of errors to HTTP responses. Every error response of the API is built here."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roost.errors import (
    Busy,
    Conflict,
    Forbidden,
    Invalid,
    LimitReached,
    NotFound,
    RoostError,
    StaleCursor,
    Unavailable,
    public,
)
from roost.protocol.errors import PROBLEM, Problem, code_of
from roost.protocol.openai import is_openai_path, openai_error, openai_status

log = logging.getLogger("roost.api")

STATUS: dict[type[RoostError], int] = {
    Invalid: 422,
    NotFound: 404,
    Forbidden: 403,
    StaleCursor: 409,
    Conflict: 409,
    Busy: 409,
    LimitReached: 429,
    Unavailable: 503,
}

LOCAL = "roost.local"
"""Key in the scope of a request: it carries the local token."""
NO_OBJECT = "the body must be a JSON object in UTF-8, with `Content-Type: application/json`"
MOST_REFUSALS = 5
"""Invalid fields named in one response."""


NO_PAGE = "no such page: see /docs for the docs and /docs/api for the API"
NOT_SIGNED_IN = "not signed in: open the page and sign in, or send an API token as `Authorization: Bearer TOKEN`"


class HttpError(HTTPException):
    """Error with a status, a code and a message, raised outside of the service."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        headers: Mapping[str, str] | None = None,
        *,
        param: str | None = None,
    ) -> None:
        super().__init__(status, message, headers)
        self.code = code
        self.param = param
        """Invalid parameter, for clients of the OpenAI-compatible API."""


class ErrorResponse(JSONResponse):
    """Response to an error; its form is that of the API whose path was requested."""

    def __init__(self, problem: Problem, param: str | None, headers: Mapping[str, str] | None) -> None:
        retry = {"Retry-After": "1"} if problem.status in (429, 503) else {}
        sent = {**retry, **(headers or {})}
        super().__init__(problem.model_dump(exclude_none=True), problem.status, sent, media_type=PROBLEM)
        self._problem = problem
        self._param = param

    @property
    def for_openai(self) -> dict[str, Any]:
        """Return the body for clients of the OpenAI-compatible API."""
        return openai_error(openai_status(self.status_code), self._problem.code, self._problem.detail, self._param)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not is_openai_path(scope["path"]):
            return await super().__call__(scope, receive, send)
        kept = {name: value for name, value in self.headers.items() if name not in ("content-length", "content-type")}
        return await JSONResponse(self.for_openai, openai_status(self.status_code), kept)(scope, receive, send)


def unauthenticated(message: str = NOT_SIGNED_IN) -> HttpError:
    """Return the error for a request without a user."""
    return HttpError(401, "unauthenticated", message, {"WWW-Authenticate": "Bearer"})


def reply(
    status: int,
    code: str,
    message: str,
    reference: str | None = None,
    *,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> ErrorResponse:
    title = HTTPStatus(status).phrase
    return ErrorResponse(
        Problem(title=title, status=status, detail=message, code=code, reference=reference), param, headers
    )


def reply_to(error: Exception, *, operator: bool = False) -> ErrorResponse:
    """Return the response to an error; for an unexpected one it holds only a reference to the log."""
    if isinstance(error, HttpError):
        return reply(error.status_code, error.code, error.detail, param=error.param, headers=error.headers)
    for kind, status in STATUS.items():
        if isinstance(error, kind):
            return reply(status, code_of(kind), str(error) if operator else public(error))
    reference = secrets.token_hex(4).upper()
    fields = {"reference": reference, "error_type": type(error).__name__}
    log.error("request failed", exc_info=error, extra=fields)
    return reply(500, "internal", f"Internal error; try again, or look up {reference} in the log.", reference)


class ErrorMiddleware:
    """Middleware that turns unexpected exceptions into responses, which still pass the security middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception as error:
            if started or scope["type"] != "http":
                raise
            await reply_to(error)(scope, receive, send)


def set_up(app: FastAPI) -> None:
    for kind in (RoostError, HttpError):
        app.add_exception_handler(kind, _handle)
    app.add_middleware(ErrorMiddleware)
    app.add_exception_handler(RequestValidationError, _handle_validation)
    app.add_exception_handler(HTTPException, _handle_http)


async def _handle(request: Request, error: Exception) -> JSONResponse:
    return reply_to(error, operator=bool(request.scope.get(LOCAL)))


async def _handle_validation(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    return _invalid(refusals(error.errors(), outer=1), param=_first_field(error.errors()))


def refusals(details: Sequence[Mapping[str, Any]], *, outer: int = 0) -> str:
    """Return which fields are invalid, and what is expected; `outer` names of a place are not those of fields."""
    found: dict[str, list[str]] = {}
    for detail in details[:MOST_REFUSALS]:
        field, expected = _refusal(detail, outer)
        found.setdefault(field, []).append(expected)
    return "; ".join(field + _any_of(expected) for field, expected in found.items())


def _first_field(details: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the name of the first invalid field; None if the body as a whole is invalid."""
    _, *names = details[0].get("loc", ("",)) if details else ("",)
    return f"{names[0]:.80}" if names and isinstance(names[0], str) else None


def _any_of(expected: list[str]) -> str:
    first, *others = dict.fromkeys(expected)
    return ", or ".join((first, *(one.removeprefix("must be ") for one in others)))


def _refusal(detail: Mapping[str, Any], outer: int) -> tuple[str, str]:
    """Return the field and what is expected; never the value, which may be long or secret."""
    kind, place = detail.get("type"), detail.get("loc", ())
    if kind == "json_invalid":
        return "", "the body must be valid JSON"
    names = [str(part) for part in place if _is_field(str(part))] if isinstance(place, tuple | list) else []
    if names == ["body"] and kind in ("missing", "model_attributes_type"):
        return "", NO_OBJECT
    field = ".".join(names[outer:]) or (names[0] if names else "the request")
    said = str(detail.get("msg", "is not valid")).removeprefix("Value error, ")
    return f"{field:.80}: ", _WORDS.get(str(kind)) or said.replace("Input should be", "must be")


_WORDS = {"missing": "must be given", "extra_forbidden": "unknown field"}


def _is_field(part: str) -> bool:
    """Return whether a part of a location is a field: for unions pydantic adds the names of types."""
    return part not in ("float", "int", "str", "bool") and not part.startswith("function-")


def _invalid(message: str, param: str | None = None) -> JSONResponse:
    return reply(STATUS[Invalid], code_of(Invalid), message, param=param)


async def _handle_http(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    if error.status_code == HTTPStatus.BAD_REQUEST:  # FastAPI's response to an undecodable body
        return _invalid(NO_OBJECT)
    phrase = HTTPStatus(error.status_code).phrase
    message = NO_PAGE if error.status_code == HTTPStatus.NOT_FOUND else phrase
    return reply(error.status_code, phrase.lower().replace(" ", "_"), message, headers=error.headers)
