"""Errors on the wire: problem details (RFC 9457), with the name of the error as `code`."""

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

PROBLEM = "application/problem+json"
"""Media type of errors."""
USER_HEADER = "Roost-User"
"""Header with the user on whose behalf the local token is used, percent-encoded; by default the local user."""
TOO_FAST = "too many requests: wait a moment and try again"
"""Sentence of a request that was refused by a rate limit, before anything was done."""

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


class Problem(BaseModel):
    """Problem details of an error: a code for programs, and a sentence for users."""

    type: str = "about:blank"
    title: str
    """Name of the status."""
    status: int
    detail: str
    """Sentence for users."""
    code: str
    reference: str | None = None
    """Reference to the log, for an unexpected error."""


def error_from(code: str, message: str) -> RoostError:
    """Return the error that the server raised; Unavailable for unknown codes."""
    return _BY_CODE.get(code, Unavailable)(message)
