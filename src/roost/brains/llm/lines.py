"""Lines to providers: models that stay open for a while, so that a run need not connect anew.

Connections belong to the loop that made them, and so does a line; the runs on that loop share it. One that nobody uses
is closed after some seconds, at once if very many rest already, and in any case with its loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
from pydantic_ai.models import Model

from roost.brains.llm.providers import CERTIFICATES, made, patience_of, place_of
from roost.ports import Profile

KEPT = 10.0
"""Seconds for which a line rests before it is closed."""
RESTING = 100
"""Lines that may rest at once, on all loops together: thousands of agents may be awake, each with a loop."""
LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=5, keepalive_expiry=KEPT)
"""Of one line: as many as are needed at once, and few that rest."""

Place = tuple[Any, ...]
"""The loop, and all that has to be the same for two runs to share a line."""


@dataclass(slots=True, eq=False, repr=False)
class Line:
    """An open model, and how many runs use it."""

    place: Place
    model: Model
    held: AsyncGenerator[Line] = field(init=False)
    """Closes it when it is closed itself. A loop that ends closes all generators that it has begun."""
    users: int = 0
    timer: asyncio.TimerHandle | None = None


class Lines:
    """All lines of one Roost."""

    def __init__(self) -> None:
        self._open: dict[Place, Line] = {}
        self._resting: set[Line] = set()
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def opened(self, profile: Profile) -> AsyncIterator[Model]:
        """The model of a profile. Raises BrainFailed if it is clear already that it cannot be asked."""
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

    async def _begun(self, place: Place, profile: Profile) -> Line:
        held = self._hold(place, profile)
        line = self._open[place] = await anext(held)  # at once: nothing is awaited there
        line.held = held
        return line

    async def _hold(self, place: Place, profile: Profile) -> AsyncGenerator[Line]:
        async with httpx2.AsyncClient(
            verify=CERTIFICATES, timeout=patience_of(profile), follow_redirects=True, limits=LIMITS
        ) as client:
            model, provider = made(profile, client)
            line = Line(place, model)
            try:
                yield line
            finally:
                self._forget(line)
                if (own := getattr(provider, "_own_http_client", None)) is not None:
                    await own.aclose()

    def _forget(self, line: Line) -> None:
        self._resting.discard(line)
        if self._open.get(line.place) is line:
            del self._open[line.place]

    async def _rest(self, line: Line) -> None:
        if len(self._resting) >= RESTING:
            self._forget(line)
            await line.held.aclose()
        else:
            self._resting.add(line)
            line.timer = asyncio.get_running_loop().call_later(KEPT, self._end, line)

    def _end(self, line: Line) -> None:
        self._forget(line)
        closing = asyncio.ensure_future(line.held.aclose())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
