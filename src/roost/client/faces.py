"""The service's faces over the network: the same coroutines with the same signatures, made from the service's."""

from __future__ import annotations

import functools
import secrets
import time
from collections.abc import AsyncIterator, Callable
from functools import cache, partial
from typing import Any

from roost.client.http import Wire
from roost.core import checks
from roost.core.facts import Fact, FactPage, decode
from roost.core.meetings.shown import MeetingView
from roost.core.metrics import Metric
from roost.faces import FACES
from roost.ports.statements.meetings import watched
from roost.protocol.faces import LONGEST_WAIT, Method, methods
from roost.protocol.metrics import MetricList


def far(wire: Wire, name: str) -> Any:
    """The face of this name, whose methods are done by the server."""
    return _kind(name)(wire)


class Far:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire


class FarMonitor(Far):
    facts: Callable[..., Any]
    wait: Callable[..., Any]

    async def metrics(self, user_id: str | None = None) -> dict[str, Metric]:
        """The numbers of the whole program, by name: for the local user, whose token it is."""
        return MetricList.model_validate(await self._wire.ask("GET", "/metrics", user_id)).by_name()

    def follow(self, user_id: str, *, after: str | None = None) -> AsyncIterator[Fact]:
        """Each fact as it is told, from a cursor on or from the first look on. Waits; ends when the program does."""
        checks.name(user_id, "the user id")
        if after is not None:
            decode(after)
        return self._follow(user_id, after)

    async def _follow(self, user_id: str, after: str | None) -> AsyncIterator[Fact]:
        cursor = (await self.facts(user_id, limit=1)).cursor if after is None else after
        while True:
            page: FactPage = await self.wait(user_id, cursor)
            if not page.is_over:
                return
            for fact in page.in_order(user_id):
                yield fact
            cursor = page.cursor


class FarMeetings(Far):
    view: Callable[..., Any]
    wait: Callable[..., Any]

    def watch(
        self, user_id: str, meeting_id: str, *, seen_by: str | None = None, after: str | None = None
    ) -> AsyncIterator[MeetingView]:
        """As it is, and again whenever it has changed. Waits; ends when the meeting is over."""
        checks.name(user_id, "the user id")
        view = partial(self.view, user_id, meeting_id, seen_by=seen_by)
        wait = partial(self.wait, user_id, meeting_id, seen_by=seen_by)
        return watched(view, wait, after)


@cache
def _kind(name: str) -> type[Far]:
    base = {"monitor": FarMonitor, "meetings": FarMeetings}.get(name, Far)
    return type(f"Far{FACES[name].__name__}", (base,), {one.name: _asking(one) for one in methods(name, FACES[name])})


def _asking(method: Method) -> Callable[..., Any]:
    @functools.wraps(method.coroutine)
    async def call(self: Far, /, *args: Any, **options: Any) -> Any:
        user, body = method.request(*args, **options)
        checks.name(user, "the user id")
        ask = _wait if method.has("timeout") else _ask
        return await ask(self._wire, method, user, body)

    return call


async def _ask(wire: Wire, method: Method, user: str, body: dict[str, Any]) -> Any:
    if method.has("key") and body.get("key") is None:
        # So that a try that is repeated does nothing twice.
        body["key"] = secrets.token_hex(16)
    return method.result(await wire.ask("POST", f"/{method.path}", user, body, repeatable=method.is_repeatable))


async def _wait(wire: Wire, method: Method, user: str, body: dict[str, Any]) -> Any:
    """Ask again as long as it is wanted and not over: one request waits for a bounded time only."""
    timeout = body.get("timeout")
    latest = None if timeout is None else time.monotonic() + checks.seconds(timeout, "the timeout")
    while True:
        asked = time.monotonic()
        wanted = LONGEST_WAIT if latest is None else min(LONGEST_WAIT, max(0.0, latest - asked))
        found = await _ask(wire, method, user, body | {"timeout": wanted})
        # One that comes back too soon is of a server that is closing, and asks nobody to wait.
        is_last = wanted < LONGEST_WAIT or time.monotonic() - asked < LONGEST_WAIT / 2
        if found.is_over or is_last:
            return found
