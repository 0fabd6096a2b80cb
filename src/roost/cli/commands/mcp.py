"""`roost mcp`: the tools for MCP clients, on standard input and output."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

from roost.api.limits.concurrency import ConcurrencyLimit
from roost.cli.app.connect import Running, announced_server, current_user, open_service
from roost.client import AsyncRemoteService
from roost.core.agents.agent import State
from roost.errors import RoostError, Unavailable
from roost.mcp_server.callers import McpCaller
from roost.service import AgentService, AsyncAgentService
from roost.settings import Settings

if TYPE_CHECKING:
    from roost.mcp_server.server import McpHost

IDLE = 2.0
"""Seconds after the last call in which the store stays open; other commands wait for it a little longer."""
LONGEST_IDLE = 600.0
"""Seconds after which it is closed even if an answer is being written, which then continues at the next start."""
TALKS = 20


def run(settings: Settings) -> None:
    """Serve until standard input ends."""
    try:
        from roost.mcp_server.server import McpHost, create_server
    except ModuleNotFoundError as error:
        raise Unavailable(f"MCP needs the package {error.name!r}: pip install 'roost[mcp]'") from error
    asyncio.run(_serve(settings, McpHost, create_server))


async def _serve(settings: Settings, host: type[McpHost], create: Callable[[McpHost], Any]) -> None:
    from mcp.server.stdio import stdio_server

    caller = McpCaller(current_user(settings), is_operator=not settings.server)
    places = ConcurrencyLimit("MCP calls", settings.limits)

    def place(caller: McpCaller, _: object) -> AbstractContextManager[None]:
        return places.taken(caller.user)

    async with asyncio.TaskGroup() as tasks:
        found = ServiceOnDemand(settings, caller.user, tasks)
        _leave_at_signals(tasks, found)
        server = create(host(lambda _: caller, found.service, place))
        async with stdio_server() as (received, sent):
            await server.run(received, sent, server.create_initialization_options())
        await found.close()


def _leave_at_signals(tasks: asyncio.TaskGroup, found: ServiceOnDemand) -> None:
    """Close the store and exit at once: a thread that reads standard input cannot be stopped."""

    async def leave(number: int) -> None:
        try:
            await found.close()
        finally:
            os._exit(128 + number)

    def begin_leaving(number: int) -> None:
        tasks.create_task(leave(number), name="mcp: leave")

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, begin_leaving, number)


class ServiceOnDemand:
    """Service of each call: that of the running server, or else one of this process while it is in use.

    Clients keep this process for days. Meanwhile the server may start, restart with another token, or stop; and another
    command may need the store.
    """

    def __init__(self, settings: Settings, user: str, tasks: asyncio.TaskGroup) -> None:
        self._settings = settings
        self._user = user
        self._tasks = tasks
        self._changing = asyncio.Lock()
        self._remote: tuple[Running, AsyncRemoteService] | None = None
        self._local: AgentService | None = None
        self._users = 0
        self._uses = 0
        self._opening: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def service(self) -> AsyncIterator[AsyncAgentService | AsyncRemoteService]:
        """Yield the service for one call."""
        async with self._changing:
            found = await self._opened()
            self._users += 1
            self._uses += 1
        try:
            yield found
        finally:
            self._users -= 1

    async def close(self) -> None:
        """Close the store; unfinished work continues at the next start."""
        if self._opening is not None:
            await asyncio.gather(self._opening, return_exceptions=True)
        if self._closing is not None:
            self._closing.cancel()
        async with self._changing:
            await self._close_local()
            if self._remote is not None:
                await self._remote[1].close()

    async def _opened(self) -> AsyncAgentService | AsyncRemoteService:
        while True:
            if self._local is not None:
                return self._local.asynchronous
            if (remote := await self._reached()) is not None:
                return remote
            if self._opening is None or self._opening.done():
                self._opening = asyncio.create_task(self._open_local(), name="mcp: open the store")
            await asyncio.shield(self._opening)  # a cancelled call must not lose an open store

    async def _open_local(self) -> None:
        opened = await asyncio.to_thread(open_service, self._settings, hosting=True)
        if isinstance(opened, AgentService):
            self._local = opened
            self._closing = self._tasks.create_task(self._close_when_idle(), name="mcp: close when idle")
        else:
            opened.close()  # a server has started meanwhile

    async def _reached(self) -> AsyncRemoteService | None:
        """Return a client of the running server; None if there is none."""
        running = await asyncio.to_thread(announced_server, self._settings)
        if running is None:
            return None
        if self._remote is None or self._remote[0] != running:
            if self._remote is not None:
                await self._remote[1].close()
            self._remote = running, running.aconnect(patience=2)
        try:
            await self._remote[1].health()
        except RoostError:
            if self._settings.server:
                raise
            return None
        return self._remote[1]

    # --- closing the store -----------------------------------------------------------------------

    async def _close_when_idle(self) -> None:
        """Close the store once it was not used for `IDLE` seconds and no answer is being written."""
        loop = asyncio.get_running_loop()
        seen, latest = -1, loop.time() + LONGEST_IDLE
        while True:
            await asyncio.sleep(IDLE)
            async with self._changing:
                if self._local is None:
                    return
                if self._users == 0 and self._uses == seen:
                    if loop.time() > latest or not await self._is_busy(self._local.asynchronous):
                        await self._close_local()
                        return
                else:
                    seen, latest = self._uses, loop.time() + LONGEST_IDLE

    async def _is_busy(self, service: AsyncAgentService) -> bool:
        try:
            talks = await service.list_sessions(self._user, limit=TALKS)
            active = await service.agents.list(self._user, state=State.ACTIVE, limit=1)
        except RoostError:
            return False  # it is of no use any more
        return bool(active) or any(talk.running and not talk.asking for talk in talks)

    async def _close_local(self) -> None:
        if self._local is not None:
            local, self._local = self._local, None
            await asyncio.to_thread(local.close)
