"""Connections of httpx2, blocking and asynchronous, behind the same coroutines.

Coroutines of the blocking ones never suspend, so threads without a loop can drive them. Code above is written once.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Protocol
from weakref import WeakSet

import httpx2

from roost.errors import Invalid

IDLE_CONNECTIONS = 8
READ_TIMEOUT = 60.0
"""Seconds of silence after which a connection is broken; the server sends something to streams more often."""
TIMEOUT = httpx2.Timeout(READ_TIMEOUT, connect=5.0, pool=None).as_dict()
LARGEST_EVENT = 64 * 1024 * 1024
CONNECTED = ("connection.connect_tcp.complete", "connection.start_tls.complete")
HEAD = "http11.receive_response_headers."
REQUEST_BEGINS = "http11.send_request_headers.started"
HEAD_BEGINS = HEAD + "started"
"""Steps of a request, as httpx2 names them."""
TOO_SLOW = "the head of the response takes too long"


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

    def __init__(self, trusted: ssl.SSLContext) -> None:
        self._trusted = trusted
        self._start()

    def _start(self) -> None:
        self._process = os.getpid()
        self._pool = httpx2.HTTPTransport(verify=self._trusted, limits=_limits(IDLE_CONNECTIONS), trust_env=False)
        self._fresh = httpx2.HTTPTransport(verify=self._trusted, limits=_limits(0), trust_env=False)
        self._sockets = _OpenSockets()
        self._heads = _HeadLimit()

    async def send(self, request: httpx2.Request, *, fresh: bool) -> httpx2.Response:
        if self._process != os.getpid():
            self._start()  # the connections of before a fork are those of the parent
        sockets, limit = self._sockets, self._heads.of(request)

        def note(name: str, info: Mapping[str, Any]) -> None:
            sockets.note(name, info)
            limit(name, info)

        request.extensions["trace"] = note
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
        self._sockets.shut_down()
        self._pool.close()
        self._fresh.close()


class _OpenSockets:
    """Sockets of connections, shut down at the end: closing one does not wake a thread that reads from it."""

    def __init__(self) -> None:
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._lock = threading.Lock()
        self._is_shut = False

    def note(self, name: str, info: Mapping[str, Any]) -> None:
        """Remember the socket of a new connection; called by httpx2 for each step of a request."""
        if name in CONNECTED:
            with self._lock:
                self._sockets.add(info["return_value"].get_extra_info("socket"))
                if self._is_shut:
                    self._shut_down()

    def shut_down(self) -> None:
        with self._lock:
            self._is_shut = True
            self._shut_down()

    def _shut_down(self) -> None:
        for one in self._sockets:
            with suppress(OSError):
                socket.socket.shutdown(one, socket.SHUT_RDWR)  # that of TLS would change the object under its reader


class _HeadLimit:
    """Limit for the whole head of a response: the timeout of httpx2 is for each read, and a head may have many."""

    def __init__(self) -> None:
        self._thread = threading.local()

    def of(self, request: httpx2.Request) -> Callable[[str, Mapping[str, Any]], None]:
        """Return what httpx2 calls for each step of a request, on the thread that sends it."""
        self._thread.latest = None

        def note(name: str, info: Mapping[str, Any]) -> None:
            if name in CONNECTED:
                info["return_value"].read = partial(self._read, info["return_value"].read)
            elif name == HEAD_BEGINS:
                self._thread.latest = time.monotonic() + _read_timeout(request)
            elif name.startswith(HEAD):
                self._thread.latest = None

        return note

    def _read(self, read: Callable[..., bytes], most: int, timeout: float | None = None) -> bytes:
        latest = getattr(self._thread, "latest", None)
        if latest is None:
            return read(most, timeout)
        if (left := latest - time.monotonic()) <= 0:
            raise httpx2.ReadTimeout(TOO_SLOW)
        return read(most, min(left, timeout or left))


class AsyncNetwork:
    """For one event loop."""

    def __init__(self, trusted: ssl.SSLContext) -> None:
        self._pool = httpx2.AsyncHTTPTransport(verify=trusted, limits=_limits(IDLE_CONNECTIONS), trust_env=False)
        self._fresh = httpx2.AsyncHTTPTransport(verify=trusted, limits=_limits(0), trust_env=False)
        self._is_closed = False

    async def send(self, request: httpx2.Request, *, fresh: bool) -> httpx2.Response:
        try:
            async with asyncio.timeout(None) as limit:
                request.extensions["trace"] = partial(self._note, limit, request)
                response = await (self._fresh if fresh else self._pool).handle_async_request(request)
        except TimeoutError:
            raise httpx2.ReadTimeout(TOO_SLOW) from None
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
        self._is_closed = True
        await self._pool.aclose()
        await self._fresh.aclose()

    async def _note(self, limit: asyncio.Timeout, request: httpx2.Request, name: str, _: Mapping[str, Any]) -> None:
        """Limit the whole head of a response; called by httpx2 for each step of a request."""
        if name == REQUEST_BEGINS and self._is_closed:
            raise httpx2.CloseError("closed while it was connected")  # the pool closes only what is connected
        if name == HEAD_BEGINS:
            limit.reschedule(asyncio.get_running_loop().time() + _read_timeout(request))


def _read_timeout(request: httpx2.Request) -> float:
    seconds: float = request.extensions["timeout"]["read"]
    return seconds


def _limits(idle: int) -> httpx2.Limits:
    return httpx2.Limits(max_connections=None, max_keepalive_connections=idle)


def trusted(ca_file: str | None) -> ssl.SSLContext:
    """Return the certificates to trust: those of the system, or of a file in PEM format."""
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ValueError) as error:  # an error of TLS is one of these
        raise Invalid(f"no certificates in {str(ca_file)!r:.200}: `ca_file` must be a file in PEM format") from error


def pinned(certificate: str) -> ssl.SSLContext:
    """Return exactly one certificate to trust, in PEM format, with any names and any issuer."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=certificate)
    except (OSError, ValueError) as error:
        raise Invalid("the certificate is not valid: it must be in PEM format") from error
    return context


def plain() -> ssl.SSLContext:
    """Return no certificates: loading them takes 100 ms."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
