"""Tools of MCP servers, which are started as a subprocess or reached by a URL.

Each server has its own loop, since the library must close resources on the loop that opened them. It is connected
when its tools are first needed, and reconnected after it was lost.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TextIO

from roost.core.values import patterns
from roost.errors import ToolFailed, Unavailable
from roost.ports import Host, Loop, Pending, Tool
from roost.ports.servers import ServerConfig
from roost.ports.tools import as_text
from roost.tools.stderr import Stderr, piped

log = logging.getLogger("roost.mcp")

CONNECT = 20.0
"""Timeout in seconds for connecting to a server and listing its tools."""
PING = 5.0


@dataclass(frozen=True, eq=False)
class McpTool(Tool):
    """Tool of a server, which validates its arguments itself."""

    schema: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def parameters(self) -> dict[str, Any]:
        return {"properties": {}, **self.schema, "type": "object"}

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        missing = [name for name in self.schema.get("required", ()) if name not in given]
        if missing:
            raise ToolFailed(f"the arguments of {self.name} are wrong: {', '.join(missing)} missing")
        return {"arguments": dict(given)}

    def bound(self, arguments: Mapping[str, Any], turn: Any) -> dict[str, Any]:
        return dict(arguments)


class McpServer:
    """One configured server, across its connections. Any loop may call it."""

    def __init__(self, host: Host, config: ServerConfig, clean: Callable[[str], str] = str) -> None:
        self._host = host
        self._config = config
        self._clean = clean
        """Redacts secrets in a server's error messages."""
        self.name = config.name
        self._lock = host.lock()
        self._connection: _Connection | None = None
        self._closed = False

    async def tools(self) -> Sequence[Tool]:
        """Connect if needed, and return its tools, prefixed with the server's name."""
        connection = self._connected()
        if not await connection.listed.within(CONNECT):
            connection.close()
            problem = f"the MCP server {self.name!r} did not answer within {CONNECT:g} seconds"
            raise Unavailable(problem + connection.stderr.tail())
        return [self._tool(tool) for tool in await connection.listed]

    def close(self) -> None:
        self._closed = True
        if self._connection is not None:
            self._connection.close()

    def _connected(self) -> _Connection:
        with self._lock:
            if self._closed:
                raise Unavailable("this Roost is closing")
            if self._connection is None or self._connection.is_over:
                self._connection = _Connection(self._host, self._config, self._clean)
            return self._connection

    def _tool(self, tool: Any) -> Tool:
        config, hints = self._config, tool.annotations
        safe = bool(hints and (hints.read_only_hint or hints.idempotent_hint))
        asks = any(patterns.matches(pattern, tool.name) for pattern in config.approval)
        return McpTool(
            f"{self.name}.{tool.name}",
            tool.description or tool.title or tool.name,
            partial(self._call, tool.name),
            config.limit,
            config.output,
            asks,
            safe,
            schema=tool.input_schema,
        )

    async def _call(self, name: str, arguments: dict[str, Any]) -> str:
        """Call a tool; a lost server is restarted first, which is safe because the call was not sent yet."""
        connection = self._connected()
        if not await connection.answers():
            connection.close()
            connection = self._connected()
            if not await connection.answers():
                connection.close()
                raise ToolFailed(f"the MCP server {self.name!r} does not answer{connection.stderr.tail()}")
        return _text(await connection.ask("call_tool", name, arguments), name)


class _Connection:
    """One connection to a server, from its start to its end."""

    def __init__(self, host: Host, config: ServerConfig, clean: Callable[[str], str]) -> None:
        self._host = host
        self._config = config
        self._clean = clean
        self.stderr = Stderr(config.name, clean)
        self.listed: Pending[list[Any]] = host.pending()
        self.is_over = False
        self._session: Any = None
        self._closing: asyncio.Event | None = None
        self._loop = host.start_loop(f"roost-mcp-{config.name}", self._main, self._ended)

    async def _main(self, loop: Loop) -> None:
        self._closing = asyncio.Event()
        if self.is_over:
            return
        async with piped(self.stderr) as errors:
            try:
                async with _opened(self._config, errors) as session:
                    self._session = session
                    self.listed.set(await _all_tools(session))
                    await self._closing.wait()
            except Exception:
                errors.close()
                if self._config.command:
                    await self.stderr.ended()
                raise

    def _ended(self, _: Loop, error: BaseException | None) -> None:
        self.is_over = True
        problem = f"the MCP server {self._config.name!r} cannot be reached: {self._why(error)}"
        if error is not None:
            log.warning("%s", problem, exc_info=error, extra={"server": self._config.name})
        self.listed.fail(Unavailable(problem))

    def _why(self, error: BaseException | None) -> str:
        return self._clean(_why(error)) + self.stderr.tail()

    def close(self) -> None:
        self.is_over = True
        self._loop.call(self._close)

    def _close(self) -> None:
        if self._closing is not None:
            self._closing.set()

    async def answers(self) -> bool:
        """Return whether the server responds to a ping."""
        try:
            if not await self.listed.within(CONNECT):
                return False
            await self.listed
            async with asyncio.timeout(PING):
                await self.ask("send_ping")
        except Exception as error:
            log.warning(
                "the MCP server %r does not answer: %s",
                self._config.name,
                self._why(error),
                extra={"server": self._config.name},
            )
            return False
        return True

    async def ask(self, method: str, *args: Any) -> Any:
        """Send a request on the loop of the server; cancelling this call cancels the request."""
        answer: Pending[Any] = self._host.pending()
        tasks: list[asyncio.Task[None]] = []

        async def do() -> None:
            try:
                answer.set(await getattr(self._session, method)(*args))
            except Exception as error:
                answer.fail(ToolFailed(f"the MCP server {self._config.name!r} failed: {self._why(error)}"))
            except BaseException:
                answer.fail(ToolFailed(f"the connection to the MCP server {self._config.name!r} was closed"))
                raise

        def begin() -> None:
            tasks.append(asyncio.get_running_loop().create_task(do(), name=f"{self._config.name} {method}"))

        self._loop.call(begin)
        try:
            while not await answer.within(1.0):
                if self.is_over:
                    raise ToolFailed(f"the MCP server {self._config.name!r} was lost during a call")
            return await answer
        finally:
            self._loop.call(lambda: [task.cancel() for task in tasks])


@asynccontextmanager
async def _opened(config: ServerConfig, errors: TextIO) -> AsyncIterator[Any]:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    async with AsyncExitStack() as stack:
        async with asyncio.timeout(CONNECT):
            if config.url is None:
                given = {name: os.environ[name] for name in config.environment if name in os.environ}
                command, *args = config.command
                server = StdioServerParameters(command=command, args=args, env=given, cwd=config.folder)
                streams = await stack.enter_async_context(stdio_client(server, errlog=errors))
                errors.close()
            else:
                token = os.environ.get(config.token or "")
                headers = {"Authorization": f"Bearer {token}"} if token else {}
                client = await stack.enter_async_context(create_mcp_http_client(headers=headers))
                streams = await stack.enter_async_context(streamable_http_client(config.url, http_client=client))
            session = await stack.enter_async_context(ClientSession(*streams[:2]))
            await session.initialize()
        yield session


async def _all_tools(session: Any) -> list[Any]:
    found: list[Any] = []
    cursor: str | None = None
    while True:
        page = await session.list_tools(cursor=cursor) if cursor else await session.list_tools()
        found += page.tools
        cursor = page.next_cursor
        if not cursor:
            return found


def _text(result: Any, name: str) -> str:
    parts = [part.text if part.type == "text" else f"[{part.type}]" for part in result.content]
    text = "\n".join(parts)
    if not parts and result.structured_content is not None:
        text = as_text(result.structured_content, name)
    if result.is_error:
        raise ToolFailed(text or f"{name} failed")
    return text


def _why(error: BaseException | None) -> str:
    """Return the innermost error of an exception group as text."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return "it ended" if error is None else f"{type(error).__name__}: {error}"
