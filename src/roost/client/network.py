"""Connections of httpx2, blocking and asynchronous, behind the same coroutines.

Coroutines of the blocking ones never suspend, so threads without a loop can drive them. Code above is written once.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from typing import Protocol

import httpx2

IDLE_CONNECTIONS = 8
TIMEOUT = httpx2.Timeout(60.0, connect=5.0, pool=None).as_dict()
LARGEST_EVENT = 64 * 1024 * 1024


class Network(Protocol):
    """Connections to servers. Raises httpx2.TransportError when one breaks or times out."""

    async def send(self, request: httpx2.Request, *, fresh: bool) -> httpx2.Response:
        """Send a request, with `fresh` on a new connection; return the response without its body."""
        ...

    def pieces(self, response: httpx2.Response) -> AsyncIterator[bytes]:
        """Yield the body as it arrives."""
        ...

    def events(self, response: httpx2.Response) -> AsyncIterator[httpx2.ServerSentEvent]:
        """Yield the events of a body as they arrive."""
        ...

    async def end(self, response: httpx2.Response) -> None: ...

    async def sleep(self, seconds: float) -> None: ...

    async def close(self) -> None: ...


class BlockingNetwork:
    """For threads without a loop."""

    def __init__(self, *, secure: bool) -> None:
        trusted = _trusted(secure)
        self._pool = httpx2.HTTPTransport(verify=trusted, limits=_limits(IDLE_CONNECTIONS), trust_env=False)
        self._fresh = httpx2.HTTPTransport(verify=trusted, limits=_limits(0), trust_env=False)

    async def send(self, request: httpx2.Request, *, fresh: bool) -> httpx2.Response:
        response = (self._fresh if fresh else self._pool).handle_request(request)
        response.request = request
        return response

    async def pieces(self, response: httpx2.Response) -> AsyncIterator[bytes]:
        for piece in response.iter_raw():
            yield piece

    async def events(self, response: httpx2.Response) -> AsyncIterator[httpx2.ServerSentEvent]:
        for event in httpx2.EventSource(response, LARGEST_EVENT):
            yield event

    async def end(self, response: httpx2.Response) -> None:
        response.close()

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251  # on a plain thread, which has no loop to hold up

    async def close(self) -> None:
        self._pool.close()
        self._fresh.close()


class AsyncNetwork:
    """For one event loop."""

    def __init__(self, *, secure: bool) -> None:
        trusted = _trusted(secure)
        self._pool = httpx2.AsyncHTTPTransport(verify=trusted, limits=_limits(IDLE_CONNECTIONS), trust_env=False)
        self._fresh = httpx2.AsyncHTTPTransport(verify=trusted, limits=_limits(0), trust_env=False)

    async def send(self, request: httpx2.Request, *, fresh: bool) -> httpx2.Response:
        response = await (self._fresh if fresh else self._pool).handle_async_request(request)
        response.request = request
        return response

    async def pieces(self, response: httpx2.Response) -> AsyncIterator[bytes]:
        async for piece in response.aiter_raw():
            yield piece

    async def events(self, response: httpx2.Response) -> AsyncIterator[httpx2.ServerSentEvent]:
        async for event in httpx2.EventSource(response, LARGEST_EVENT):
            yield event

    async def end(self, response: httpx2.Response) -> None:
        await response.aclose()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        await self._pool.aclose()
        await self._fresh.aclose()


def _limits(idle: int) -> httpx2.Limits:
    return httpx2.Limits(max_connections=None, max_keepalive_connections=idle)


def _trusted(secure: bool) -> ssl.SSLContext:
    """Return the certificates to trust. Without TLS there are none, since loading them takes 100 ms."""
    return ssl.create_default_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
