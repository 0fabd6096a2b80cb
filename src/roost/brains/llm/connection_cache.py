"""Cache of connections to providers, so that a run need not reconnect.

A connection belongs to the loop that opened it, and the runs on that loop share it. An idle one is closed after some
seconds, at once if too many are idle, and in any case with its loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
from pydantic_ai.models import Model

from roost.brains.llm.non_streaming import ReplyCapturingClient
from roost.brains.llm.providers import CERTIFICATES, made, patience_of, place_of
from roost.ports import Profile

KEPT = 10.0
"""Seconds for which an idle connection is kept."""
RESTING = 100
"""Idle connections on all loops together: thousands of agents may be awake, each with a loop."""
LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=5, keepalive_expiry=KEPT)
"""Limits of one client: any number of connections in use, and a few idle ones."""

Place = tuple[Any, ...]
"""Cache key: the loop, and everything that must be equal for two runs to share a connection."""


@dataclass(slots=True, eq=False, repr=False)
class CachedConnection:
    """Open model, and the number of runs that use it."""

    place: Place
    model: Model
    held: AsyncGenerator[CachedConnection] = field(init=False)
    """Generator that closes the model with itself. A loop that ends closes all its generators."""
    users: int = 0
    timer: asyncio.TimerHandle | None = None


class ConnectionCache:
    """Connections of one Roost."""

    def __init__(self) -> None:
        self._open: dict[Place, CachedConnection] = {}
        self._resting: set[CachedConnection] = set()
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def opened(self, profile: Profile) -> AsyncIterator[Model]:
        """Yield the model of a profile; raise BrainFailed if it clearly cannot be used."""
        place = (asyncio.get_running_loop(), *place_of(profile))
        line = self._open.get(place) or await self._begun(place, profile)
        line.users += 1
        self._resting.discard(line)
        if line.timer is not None:
            line.timer.cancel()
        try:
            yield line.model
        finally:
            line.users -= 1
            if line.users == 0:
                await self._rest(line)

    async def _begun(self, place: Place, profile: Profile) -> CachedConnection:
        held = self._hold(place, profile)
        line = self._open[place] = await anext(held)  # does not suspend
        line.held = held
        return line

    async def _hold(self, place: Place, profile: Profile) -> AsyncGenerator[CachedConnection]:
        async with ReplyCapturingClient(
            verify=CERTIFICATES, timeout=patience_of(profile), follow_redirects=True, limits=LIMITS
        ) as client:
            model, provider = made(profile, client)
            line = CachedConnection(place, model)
            try:
                yield line
            finally:
                self._forget(line)
                if (own := getattr(provider, "_own_http_client", None)) is not None:
                    await own.aclose()

    def _forget(self, line: CachedConnection) -> None:
        self._resting.discard(line)
        if self._open.get(line.place) is line:
            del self._open[line.place]

    async def _rest(self, line: CachedConnection) -> None:
        if len(self._resting) >= RESTING:
            self._forget(line)
            await line.held.aclose()
        else:
            self._resting.add(line)
            line.timer = asyncio.get_running_loop().call_later(KEPT, self._end, line)

    def _end(self, line: CachedConnection) -> None:
        self._forget(line)
        closing = asyncio.ensure_future(line.held.aclose())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
