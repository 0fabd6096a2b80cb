"""Real clients of the `mcp` package, over HTTP and over standard input."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import quote

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from roost.protocol.errors import USER_HEADER
from tests.api.serving import Served

T = TypeVar("T")
ERAS = ("auto", "legacy")
"""Ways for a client to begin: with requests that stand alone (2026-07-28), or with the handshake of older clients."""


@asynccontextmanager
async def connected(served: Served, user: str = "ann", era: str = "auto", **headers: str) -> AsyncIterator[Client]:
    """Yield a client of `/mcp` with the local token, for this user."""
    token = {"Authorization": f"Bearer {served.identity.token}", USER_HEADER: quote(user)}
    async with (
        httpx2.AsyncClient(headers=token | headers, trust_env=False, timeout=60) as http,
        Client(streamable_http_client(f"{served.url}/mcp", http_client=http), mode=era) as client,
    ):
        yield client


async def called(client: Client, tool: str, /, **arguments: Any) -> Any:
    """Call a tool; return its structured result."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def refused(client: Client, tool: str, /, **arguments: Any) -> str:
    """Call a tool that fails; return its sentence."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result
    assert result.structured_content is None
    [content] = result.content
    assert content.type == "text"
    return content.text


def run(test: Coroutine[Any, Any, T]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(60):
            return await test

    return asyncio.run(bounded())
