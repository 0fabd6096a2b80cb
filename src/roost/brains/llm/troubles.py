"""What goes wrong with providers, sorted for people; nothing that a provider says about it is shown to them."""

from __future__ import annotations

import os

import httpx2
from pydantic_ai import exceptions as known

from roost.brains.chat.answering import Trouble
from roost.core.faults import Fault
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
"""The first that fits decides. What nobody can read was not said by a provider that is well."""
TROUBLES = (known.AgentRunError, known.UserError, OSError, ValueError, httpx2.HTTPError)
"""What is sorted out; anything else is a mistake in a program, and its trace belongs into the log."""


def sorted_out(error: Exception, profile: Profile) -> Trouble:
    """What it means, with the advice that goes with it; keys are taken out of what is said about it."""
    kind = next(fault for sort, fault in _SORTS if isinstance(error, sort))
    text = hidden(f"{type(error).__name__}: {error}")
    trouble = Trouble(text, kind=kind, advice=_advice(kind, error, profile))
    trouble.wait = _wait_of(error)
    return trouble


def _wait_of(error: Exception) -> float:
    """For how many seconds the provider asks to be left alone."""
    asked = getattr(error, "retry_after", None)
    return float(asked) if isinstance(asked, int | float) and asked > 0 else 0.0


def hidden(text: str) -> str:
    """The text without any key that this program has."""
    for name, value in os.environ.items():
        if len(value) >= 6 and name.endswith(("KEY", "TOKEN", "SECRET")):
            text = text.replace(value, "•••")
    return text


def _advice(kind: Fault, error: Exception, profile: Profile) -> str | None:
    match kind:
        case Fault.RATE_LIMIT if isinstance(error, known.ModelQuotaExceededError):
            return "what is paid for at the provider is used up: see to it there, then try again"
        case Fault.RATE_LIMIT if wait := _wait_of(error):
            return f"try again in {_spoken(wait)}"
        case Fault.INTERNAL:
            return "the provider does not take the request: look at what the profile sets, and at the log"
        case Fault.MODEL:
            return f"the provider does not know {profile.model!r}: correct `model` in the settings and try again"
    return None


def _spoken(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    return f"{round(seconds / 60)} minutes" if seconds < 5_400 else f"{round(seconds / 3_600)} hours"
