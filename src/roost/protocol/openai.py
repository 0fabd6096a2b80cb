"""Form of errors in the OpenAI-compatible API: `{"error": {"message", "type", "param", "code"}}`."""

from __future__ import annotations

from typing import Any

PREFIX = "/v1"
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_CODES = {"unauthenticated": "invalid_api_key", "limit_reached": "rate_limit_exceeded"}
"""Codes for which existing clients expect another name."""


def is_openai_path(path: str) -> bool:
    """Return whether a path is one of the OpenAI-compatible API."""
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def openai_status(status: int) -> int:
    """Return the status that existing clients expect for invalid arguments: 400."""
    return 400 if status == 422 else status


def openai_error(status: int, code: str, message: str, param: str | None = None) -> dict[str, Any]:
    """Return the body of an error response; `param` is the parameter that is invalid."""
    kind = "server_error" if status >= 500 else _TYPES.get(status, "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": _CODES.get(code, code)}}
