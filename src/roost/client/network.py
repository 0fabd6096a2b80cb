"""Connections, blocking and asynchronous, behind the same coroutines.

Coroutines of the blocking ones never suspend, so threads without a loop can drive them. Code above is written once.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from typing import Protocol

CONNECT_PATIENCE = 5.0
PATIENCE = 60.0
LONGEST_LINE = 64 * 1024
PIECE = 64 * 1024


class BrokenConnection(ConnectionError):
    """The connection ended early, or the peer does not speak HTTP."""


class NetworkConnection(Protocol):
    """Byte stream to a server. Raises OSError when the connection breaks or times out."""

    async def send(self, data: bytes) -> None: ...

    async def line(self) -> bytes:
        """Read up to the end of a line, inclusive."""
        ...

    async def exactly(self, count: int) -> bytes: ...

    async def some(self) -> bytes:
        """Return received bytes; empty at the end of the stream."""
        ...

    def close(self) -> None: ...


class Connector(Protocol):
    async def connect(self, host: str, port: int, *, secure: bool) -> NetworkConnection: ...

    async def sleep(self, seconds: float) -> None: ...


# --- for plain threads -------------------------------------------------------------------------------------


class BlockingConnector:
    async def connect(self, host: str, port: int, *, secure: bool) -> NetworkConnection:
        plain = socket.create_connection((host, port), CONNECT_PATIENCE)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            made = ssl.create_default_context().wrap_socket(plain, server_hostname=host) if secure else plain
            made.settimeout(PATIENCE)
        except BaseException:
            plain.close()
            raise
        return _PlainConnection(made)

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251  # on a plain thread, which has no loop to hold up


class _PlainConnection:
    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._file = connected.makefile("rb")

    async def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    async def line(self) -> bytes:
        return _whole_line(self._file.readline(LONGEST_LINE))

    async def exactly(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) < count:
            raise BrokenConnection("the connection ended early")
        return data

    async def some(self) -> bytes:
        return self._file.read1(PIECE)

    def close(self) -> None:
        self._file.close()
        self._socket.close()


# --- for a loop --------------------------------------------------------------------------------------------


class AsyncConnector:
    async def connect(self, host: str, port: int, *, secure: bool) -> NetworkConnection:
        async with asyncio.timeout(CONNECT_PATIENCE):
            reader, writer = await asyncio.open_connection(host, port, ssl=secure or None, limit=LONGEST_LINE)
        return _LoopConnection(reader, writer)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _LoopConnection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, data: bytes) -> None:
        async with asyncio.timeout(PATIENCE):
            self._writer.write(data)
            await self._writer.drain()

    async def line(self) -> bytes:
        async with asyncio.timeout(PATIENCE):
            try:
                return _whole_line(await self._reader.readline())
            except ValueError as error:
                raise BrokenConnection("a line is too long") from error

    async def exactly(self, count: int) -> bytes:
        async with asyncio.timeout(PATIENCE):
            try:
                return await self._reader.readexactly(count)
            except asyncio.IncompleteReadError as error:
                raise BrokenConnection("the connection ended early") from error

    async def some(self) -> bytes:
        async with asyncio.timeout(PATIENCE):
            return await self._reader.read(PIECE)

    def close(self) -> None:
        # Nothing is left to send, and a loop that ends next would not wait for a graceful close.
        self._writer.transport.abort()


def _whole_line(line: bytes) -> bytes:
    if not line.endswith(b"\n"):
        raise BrokenConnection("the connection ended early, or a line is too long")
    return line
