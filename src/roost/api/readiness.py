"""Readiness: whether writes are committed, found out by one heartbeat a second instead of one write per probe."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic

from roost.errors import RoostError, public
from roost.service import AsyncAgentService

log = logging.getLogger("roost.api")

EVERY = 1.0
"""Seconds between two heartbeats; any other commit counts as one."""
PATIENCE = 3.0
"""Timeout of a heartbeat in seconds."""
WATCHED = 60.0
"""Seconds for which heartbeats continue after a probe. Without probes there are none, so an idle machine sleeps."""


class Readiness:
    """Readiness of one service. Used on the server's loop."""

    def __init__(self, service: AsyncAgentService) -> None:
        self._service = service
        self._asked = asyncio.Event()
        self._asked_at = -WATCHED
        self._known_at = -WATCHED
        self._trouble: str | None = None
        self._beating: asyncio.Task[None] | None = None

    async def problem(self) -> str | None:
        """Return why the service is not ready, in a public sentence; None if it is ready."""
        self._asked_at = monotonic()
        self._asked.set()
        if self._asked_at - self._known_at > 2 * EVERY:
            await self._beat()
        health = self._service.health()
        if self._trouble is None and (health.workers == 0 or health.problem):
            return "not all workers are running: see `roost doctor` and the log"
        return self._trouble

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Write heartbeats while probes arrive."""
        watching = asyncio.create_task(self._watch(), name="readiness")
        try:
            yield
        finally:
            for task in filter(None, (watching, self._beating)):
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _watch(self) -> None:
        while True:
            await self._asked.wait()
            await self._beat()
            await asyncio.sleep(EVERY)
            if monotonic() - self._asked_at > WATCHED:
                self._asked.clear()

    async def _beat(self) -> None:
        """Wait for the heartbeat in progress, or write one."""
        if self._beating is None or self._beating.done():
            self._beating = asyncio.create_task(self._write(), name="heartbeat")
        await asyncio.shield(self._beating)

    async def _write(self) -> None:
        trouble, told = None, None
        try:
            async with asyncio.timeout(PATIENCE):
                await self._service.heartbeat(EVERY)
        except RoostError as error:
            trouble, told = public(error), str(error)
        except TimeoutError:
            trouble = told = f"no write to the store has completed for {PATIENCE:g} seconds"
        except Exception as error:
            trouble, told = "cannot write to the store: see the log", repr(error)
        if trouble != self._trouble:
            log.error("not ready: %s", told) if told else log.warning("ready again")
        self._trouble, self._known_at = trouble, monotonic()
