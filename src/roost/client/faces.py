"""The service's faces over the network: the same methods with the same signatures, made from those of the service."""

from __future__ import annotations

import functools
import secrets
import time
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

from roost.client.http import Wire
from roost.core import checks
from roost.faces import FACES
from roost.protocol.faces import LONGEST_WAIT, Method, methods

F = TypeVar("F")


def over(wire: Wire, name: str, kind: type[F]) -> F:
    """A face of this kind whose methods are done by the server."""
    made: F = _far(name, cast(Any, kind))(wire)
    return made


@cache
def _far(name: str, kind: Any) -> Any:
    """The kind, with each method of the face in place of its own; what does the work is a wire."""
    return type(f"Far{kind.__name__}", (kind,), {one.name: _asking(one) for one in methods(name, FACES[name])})


def _asking(method: Method) -> Callable[..., Any]:
    @functools.wraps(method.coroutine)
    def call(self: Any, /, *args: Any, **options: Any) -> Any:
        user, body = method.request(*args, **options)
        checks.name(user, "the user id")
        if method.has("timeout"):
            return _wait(self._face, method, user, body)
        return _ask(self._face, method, user, body)

    return call


def _ask(wire: Wire, method: Method, user: str, body: dict[str, Any]) -> Any:
    if method.has("key") and body.get("key") is None:
        # So that a try that is repeated does nothing twice.
        body["key"] = secrets.token_hex(16)
    return method.result(wire.ask("POST", f"/{method.path}", user, body, repeatable=method.is_repeatable))


def _wait(wire: Wire, method: Method, user: str, body: dict[str, Any]) -> Any:
    """Ask again as long as it is wanted and not over: one request waits for a bounded time only."""
    timeout = body.get("timeout")
    latest = None if timeout is None else time.monotonic() + checks.seconds(timeout, "the timeout")
    while True:
        asked = time.monotonic()
        wanted = LONGEST_WAIT if latest is None else min(LONGEST_WAIT, max(0.0, latest - asked))
        found = _ask(wire, method, user, body | {"timeout": wanted})
        # One that comes back too soon is of a server that is closing, and asks nobody to wait.
        is_last = wanted < LONGEST_WAIT or time.monotonic() - asked < LONGEST_WAIT / 2
        if found.is_over or is_last:
            return found
