"""Errors on the wire: `{"error": {"code", "message"}}`, where the code is the name of the error."""

from __future__ import annotations

import re

from pydantic import BaseModel

from roost.errors import Busy, Conflict, Forbidden, Invalid, LimitReached, NotFound, RoostError, Unavailable

USER_HEADER = "Roost-User"
"""For whom the holder of the local token asks, percent-encoded; else for the local user."""

ERRORS: tuple[type[RoostError], ...] = (Invalid, NotFound, Forbidden, Conflict, Busy, LimitReached, Unavailable)


def code_of(kind: type[RoostError]) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


_BY_CODE = {code_of(kind): kind for kind in ERRORS}


class Fault(BaseModel):
    """What went wrong, as one word for programs and one sentence for people."""

    code: str
    message: str
    reference: str | None = None


class FaultReply(BaseModel):
    error: Fault


def error_from(code: str, message: str) -> RoostError:
    """The error that was raised on the other side; Unavailable for what this side does not know."""
    return _BY_CODE.get(code, Unavailable)(message)
