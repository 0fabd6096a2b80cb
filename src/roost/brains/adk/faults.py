"""What goes wrong in an ADK agent, sorted."""

from __future__ import annotations

from google.adk.agents.invocation_context import LlmCallsLimitExceededError
from google.adk.events import Event

from roost.brains.adk.history import ABORTED
from roost.core.faults import Fault
from roost.errors import BrainFailed, RoostError

_NETWORK = {"httpx", "httpcore", "aiohttp", "requests", "urllib3", "grpc", "ssl", "socket"}
_TOO_LONG = ("token count", "context length", "context window", "too long", "too many tokens", "maximum context")


def sorted_out(error: Exception, by_tool: bool) -> Exception:
    """The same error, or one that says of which sort it is."""
    if isinstance(error, RoostError | TimeoutError | ConnectionError):
        return error
    kind = Fault.TOOL if by_tool else _kind(error)
    if kind is Fault.INTERNAL:
        return error
    sorted_one = BrainFailed(f"{type(error).__name__}: {error}", kind=kind)
    sorted_one.__cause__ = error
    return sorted_one


def check(event: Event) -> None:
    """Raise the error that an event is, if it is one: a model may report it instead of raising it."""
    if not event.error_code or event.error_code == ABORTED or event.partial or event.content:
        return
    code = str(event.error_code)
    kind = _by_status(int(code), event.error_message or "") if code.isdigit() else Fault.PROVIDER
    raise BrainFailed(f"the model reports {code}: {event.error_message or 'no more is said'}", kind=kind)


def _kind(error: Exception) -> Fault:
    text = str(error)
    if isinstance(error, LlmCallsLimitExceededError):
        return Fault.TOO_LONG
    for name in ("status_code", "code"):  # as the clients of models call it
        if isinstance(status := getattr(error, name, None), int):
            return _by_status(status, text)
    if {type(one).__module__.partition(".")[0] for one in _chain(error)} & _NETWORK:
        return Fault.PROVIDER
    if isinstance(error, ValueError) and "api key" in text.lower():
        return Fault.BAD_KEY
    return Fault.INTERNAL


def _by_status(status: int, text: str) -> Fault:
    lower = text.lower()
    if status in (401, 403) or (status == 400 and "api key" in lower):
        return Fault.BAD_KEY
    if status == 429:
        return Fault.RATE_LIMIT
    if status == 413 or (status == 400 and any(sign in lower for sign in _TOO_LONG)):
        return Fault.TOO_LONG
    return Fault.PROVIDER if status in (408, 409) or status >= 500 else Fault.INTERNAL


def _chain(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found
