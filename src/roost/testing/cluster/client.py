"""Client of a simulated cluster: each call goes to one node, chosen by the seed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import reduce
from typing import Any, cast

from roost.service import AsyncAgentService

Send = Callable[[Callable[[AsyncAgentService], Any]], Awaitable[Any]]
"""Sends a call to a node."""


class _Method:
    """A method of the service, by its path: `agents.create`."""

    def __init__(self, send: Send, path: tuple[str, ...]) -> None:
        self._send = send
        self._path = path

    def __getattr__(self, name: str) -> _Method:
        return _Method(self._send, (*self._path, name))

    def __call__(self, *args: Any, **options: Any) -> Awaitable[Any]:
        return self._send(lambda service: reduce(getattr, self._path, service)(*args, **options))  # type: ignore[operator]


def client(send: Send) -> AsyncAgentService:
    """Return a service whose methods, if they are coroutines, are called on one of the nodes."""
    return cast("AsyncAgentService", _Method(send, ()))
