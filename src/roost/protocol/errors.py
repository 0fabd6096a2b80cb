"""Errors on the wire: `{"error": {"code", "message"}}`, where the code is the name of the error."""

from __future__ import annotations

import re

from pydantic import BaseModel

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
)

USER_HEADER = "Roost-User"
"""Header with the user on whose behalf the local token is used, percent-encoded; by default the local user."""

ERRORS: tuple[type[RoostError], ...] = (
    Invalid,
    NotFound,
    Forbidden,
    StaleCursor,
    Conflict,
    Busy,
    LimitReached,
    Unavailable,
)


def code_of(kind: type[RoostError]) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


_BY_CODE = {code_of(kind): kind for kind in ERRORS}


class ErrorBody(BaseModel):
    """Error as a code for programs and a sentence for users."""

    code: str
    message: str
    reference: str | None = None


class ErrorReply(BaseModel):
    error: ErrorBody


def error_from(code: str, message: str) -> RoostError:
    """Return the error that the server raised; Unavailable for unknown codes."""
    return _BY_CODE.get(code, Unavailable)(message)
