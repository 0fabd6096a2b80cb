"""Classification of errors of ADK agents."""

from __future__ import annotations

from collections.abc import Sequence

from google.adk.agents.invocation_context import LlmCallsLimitExceededError
from google.adk.events import Event

from roost.brains.adk.history import ABORTED
from roost.core.failures.faults import Fault
from roost.errors import BrainFailed, RoostError

_NETWORK = {"httpx", "httpcore", "aiohttp", "requests", "urllib3", "grpc", "ssl", "socket"}
_TOO_LONG = ("token count", "context length", "context window", "too long", "too many tokens", "maximum context")


def classified(error: Exception, of_tools: Sequence[BaseException]) -> Exception:
    """Return the error, or a BrainFailed with its kind."""
    chain = _chain(error)
    for cause in chain:
        if isinstance(cause, RoostError):  # the ADK wraps errors of plugins
            return cause
    if any(cause in of_tools for cause in chain):
        kind = Fault.TOOL
    elif isinstance(error, TimeoutError | ConnectionError) or (kind := _kind(error)) is Fault.INTERNAL:
        return error
    sorted_one = BrainFailed(f"{type(error).__name__}: {error}", kind=kind)
    sorted_one.__cause__ = error
    return sorted_one


def check(event: Event | None) -> None:
    """Raise the error of the last event, if it has one: a model may report errors instead of raising them."""
    if event is None or not event.error_code or event.error_code == ABORTED or event.content:
        return
    code = str(event.error_code)
    kind = _by_status(int(code), event.error_message or "") if code.isdigit() else _by_name(code)
    raise BrainFailed(f"the model reports {code}: {event.error_message or 'no message'}", kind=kind)


def _kind(error: Exception) -> Fault:
    text = str(error)
    if isinstance(error, LlmCallsLimitExceededError):
        return Fault.STEPS
    for name in ("status_code", "code"):  # names used by clients of models
        if isinstance(status := getattr(error, name, None), int):
            return _by_status(status, text)
    if {type(cause).__module__.partition(".")[0] for cause in _chain(error)} & _NETWORK:
        return Fault.PROVIDER
    if isinstance(error, ValueError) and "api key" in text.lower():
        return Fault.NO_KEY
    return Fault.INTERNAL


def _by_status(status: int, text: str) -> Fault:
    lower = text.lower()
    if status in (401, 403) or (status == 400 and "api key" in lower):
        return Fault.BAD_KEY
    if status == 404:
        return Fault.MODEL
    if status == 429:
        return Fault.RATE_LIMIT
    if status == 413 or (status == 400 and any(sign in lower for sign in _TOO_LONG)):
        return Fault.TOO_LONG
    return Fault.PROVIDER if status in (408, 409) or status >= 500 else Fault.INTERNAL


def _by_name(code: str) -> Fault:
    """Return the fault for Google's finish reason; most of them are refusals."""
    if code in ("MAX_TOKENS",):
        return Fault.TOO_LONG
    return Fault.PROVIDER if code in ("OTHER", "MALFORMED_FUNCTION_CALL", "UNKNOWN_ERROR") else Fault.REFUSED


def _chain(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found
