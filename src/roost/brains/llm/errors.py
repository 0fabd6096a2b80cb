"""Classification of providers' errors; users never see the provider's own message."""

from __future__ import annotations

import os

import httpx2
from pydantic_ai import exceptions as known

from roost.brains.chat.tool_loop import RetryLater
from roost.core.failures.faults import Fault
from roost.ports import Profile

_SORTS: tuple[tuple[type[BaseException], Fault], ...] = (
    (known.ModelContextWindowExceededError, Fault.TOO_LONG),
    (known.ModelAuthenticationError, Fault.BAD_KEY),
    (known.ModelQuotaExceededError, Fault.RATE_LIMIT),
    (known.ModelRateLimitError, Fault.RATE_LIMIT),
    (known.ModelNotFoundError, Fault.MODEL),
    (known.ContentFilterError, Fault.REFUSED),
    (known.ModelRequestRejectedError, Fault.INTERNAL),
    (known.ModelAPIError, Fault.PROVIDER),
    (known.UnexpectedModelBehavior, Fault.PROVIDER),
    (known.UserError, Fault.MODEL),
    (Exception, Fault.PROVIDER),
)
"""The first match decides. An unparsable answer counts as a failure of the provider."""
TROUBLES = (known.AgentRunError, known.UserError, OSError, ValueError, httpx2.HTTPError)
"""Classified errors; any other is a bug, whose traceback belongs in the log."""


def classified(error: Exception, profile: Profile) -> RetryLater:
    """Return the classified error with its advice; keys are removed from the message."""
    kind = next(fault for sort, fault in _SORTS if isinstance(error, sort))
    text = hidden(f"{type(error).__name__}: {error}")
    trouble = RetryLater(text, kind=kind, advice=_advice(kind, error, profile))
    trouble.wait = _wait_of(error)
    return trouble


def _wait_of(error: Exception) -> float:
    """Return the seconds after which the provider allows a retry."""
    asked = getattr(error, "retry_after", None)
    return float(asked) if isinstance(asked, int | float) and asked > 0 else 0.0


def hidden(text: str) -> str:
    """Return the text without any known key."""
    for name, value in os.environ.items():
        if len(value) >= 6 and name.endswith(("KEY", "TOKEN", "SECRET")):
            text = text.replace(value, "•••")
    return text


def _advice(kind: Fault, error: Exception, profile: Profile) -> str | None:
    match kind:
        case Fault.RATE_LIMIT if isinstance(error, known.ModelQuotaExceededError):
            return "the quota at the provider is used up: check your account there, then try again"
        case Fault.RATE_LIMIT if wait := _wait_of(error):
            return f"try again in {_spoken(wait)}"
        case Fault.INTERNAL:
            return "the provider rejects the request: check the profile and the log"
        case Fault.MODEL:
            return f"the provider does not know {profile.model!r}: correct `model` in the settings and try again"
    return None


def _spoken(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    return f"{round(seconds / 60)} minutes" if seconds < 5_400 else f"{round(seconds / 3_600)} hours"
