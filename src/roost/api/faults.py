"""The one table: which error gets which status. Every refusal and every failure leaves the API through here."""

from __future__ import annotations

import logging
import secrets
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roost.errors import Busy, Conflict, Forbidden, Invalid, LimitReached, NotFound, RoostError, Unavailable
from roost.protocol.faults import Fault, FaultReply, code_of

log = logging.getLogger("roost.api")

STATUS: dict[type[RoostError], int] = {
    Invalid: 422,
    NotFound: 404,
    Forbidden: 403,
    Conflict: 409,
    Busy: 409,
    LimitReached: 429,
    Unavailable: 503,
}

NO_OBJECT = "the body must be a JSON object in UTF-8, not too deep, with `Content-Type: application/json`"
MOST_REFUSALS = 5
"""How many fields are named at once."""


class Refused(HTTPException):
    """Turned away at the door, before it is known what was wanted: status, code and sentence."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(status, message)
        self.code = code


def unauthenticated() -> Refused:
    return Refused(401, "unauthenticated", "nobody is signed in here: open the page first, or send the local token")


def reply(status: int, code: str, message: str, reference: str | None = None) -> JSONResponse:
    fault = FaultReply(error=Fault(code=code, message=message, reference=reference))
    retry = {"Retry-After": "1"} if status in (429, 503) else None
    return JSONResponse(fault.model_dump(exclude_none=True), status, headers=retry)


def reply_to(error: Exception) -> JSONResponse:
    """What whoever asked reads about an error; of an unexpected one only a reference to the log."""
    if isinstance(error, Refused):
        return reply(error.status_code, error.code, error.detail)
    for kind, status in STATUS.items():
        if isinstance(error, kind):
            return reply(status, code_of(kind), str(error))
    reference = secrets.token_hex(4).upper()
    fields = {"reference": reference, "error_type": type(error).__name__}
    log.error("a request has failed", exc_info=error, extra=fields)
    return reply(500, "internal", f"Something went wrong inside; try again (reference {reference}).", reference)


class Net:
    """Middleware that catches what nobody expected, so that the answer still leaves through the door."""

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
    for kind in (RoostError, Refused):
        app.add_exception_handler(kind, _handle)
    app.add_middleware(Net)
    app.add_exception_handler(RequestValidationError, _handle_validation)
    app.add_exception_handler(HTTPException, _handle_http)


async def _handle(_: Request, error: Exception) -> JSONResponse:
    return reply_to(error)


async def _handle_validation(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    refusals: dict[str, list[str]] = {}
    for detail in error.errors()[:MOST_REFUSALS]:
        field, expected = _refusal(detail)
        refusals.setdefault(field, []).append(expected)
    return _invalid("; ".join(field + _any_of(expected) for field, expected in refusals.items()))


def _any_of(expected: list[str]) -> str:
    first, *others = dict.fromkeys(expected)
    return ", or ".join((first, *(one.removeprefix("must be ") for one in others)))


def _refusal(detail: dict[str, object]) -> tuple[str, str]:
    """The field, and what is expected; nothing of what was sent, which may be long or secret."""
    kind, place = detail.get("type"), detail.get("loc", ())
    if kind == "json_invalid":
        return "", "the body must be valid JSON"
    names = [str(part) for part in place if _is_field(str(part))] if isinstance(place, tuple | list) else []
    if names == ["body"] and kind in ("missing", "model_attributes_type"):
        return "", NO_OBJECT
    field = ".".join(names[1:]) or (names[0] if names else "the request")
    said = str(detail.get("msg", "is not valid")).removeprefix("Value error, ")
    return f"{field:.80}: ", _WORDS.get(str(kind)) or said.replace("Input should be", "must be")


_WORDS = {"missing": "must be given", "extra_forbidden": "is not known"}


def _is_field(part: str) -> bool:
    """Where one of several types is expected, pydantic names them in the place too."""
    return part not in ("float", "int", "str", "bool") and not part.startswith("function-")


def _invalid(message: str) -> JSONResponse:
    return reply(STATUS[Invalid], code_of(Invalid), message)


async def _handle_http(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    if error.status_code == HTTPStatus.BAD_REQUEST:  # what FastAPI says of a body that Python cannot read
        return _invalid(NO_OBJECT)
    phrase = HTTPStatus(error.status_code).phrase
    return reply(error.status_code, phrase.lower().replace(" ", "_"), phrase)
