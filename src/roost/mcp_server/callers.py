"""Callers of tools, and their calls in progress."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import anyio


@dataclass(frozen=True, slots=True)
class McpCaller:
    """Authenticated user of a request. `is_operator`: may read the texts of errors of the store."""

    user: str
    address: str = ""
    is_operator: bool = False


class CallCancelled(Exception):
    """The client has cancelled this call."""


class RunningCalls:
    """Calls in progress by user, session and request id, so that another request can cancel one.

    A session id only tells the clients of one user apart: it grants nothing, and other users cannot use it.
    """

    def __init__(self) -> None:
        self._scopes: dict[tuple[str, str, str], anyio.CancelScope] = {}

    @contextmanager
    def running(self, user: str, session: str, request_id: object) -> Iterator[None]:
        """Let `cancel` end this block, which then raises CallCancelled."""
        name = (user, session, str(request_id))
        with anyio.CancelScope() as scope:
            self._scopes[name] = scope
            try:
                yield
            finally:
                if self._scopes.get(name) is scope:
                    del self._scopes[name]
        if scope.cancelled_caught:
            raise CallCancelled

    def cancel(self, user: str, session: str, request_id: object) -> None:
        scope = self._scopes.get((user, session, str(request_id)))
        if scope is not None:
            scope.cancel()
