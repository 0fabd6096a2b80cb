"""Connections of the server: limits of their number, and timeouts for sending a request and reading the response.

An idle connection may be closed at any time, so the oldest idle ones make room for new ones. A connection that sends
its request too slowly or does not read its response is aborted: closing it would wait for the reader.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from ipaddress import ip_address, ip_network
from time import monotonic
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from roost.core.limits.limits import Limits

log = logging.getLogger("roost.api.connections")

SWEEP = 1.0
"""Seconds between two checks of all connections."""
SLOWEST = 4 * 1024
"""Minimum transfer rate of a body in bytes per second, after `request_timeout`."""
MIB = 1024 * 1024
UNSENT = 64 * 1024
"""Bytes in the buffers of the system that a client has not read; further ones wait in the process, where they count."""
READ = 8 * 1024
"""Bytes that are read from a WebSocket at once, before others have their turn."""
FRAMES_PER_READ = 256
"""Most frames in these bytes, since each costs time. They are 32 bytes long then: no request is that short."""
FRAGMENTS = 10_000
"""Most frames of one message. Each costs memory, even if it is empty."""
STREAM = "roost.stream"
"""Key in the scope of a request whose response is a stream: it is closed when the server stops, and can be resumed."""
CHUNKS = "roost.chunks"
"""Extension in the scope of a request: a coroutine that sends a part of a body of unknown length, after its head."""
FRAMES = "roost.frames"
"""Extension in the scope of a WebSocket: a coroutine that sends an encoded frame, which many connections can share."""
REFUSED = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


_PASSED_ON = (
    "abort",
    "close",
    "get_extra_info",
    "is_closing",
    "pause_reading",
    "resume_reading",
    "set_protocol",
    "get_protocol",
    "set_write_buffer_limits",
    "is_reading",
    "can_write_eof",
)


class CountingTransport(asyncio.Transport):
    """Transport that counts written bytes, and drops writes after closing without a warning."""

    __slots__ = ("_below", "_transport", "write_total", *_PASSED_ON)

    def __init__(self, transport: asyncio.Transport) -> None:
        self._below = transport
        """Transport of the socket; with TLS it has a buffer of its own."""
        self.write_total = 0
        self.use(transport)

    def use(self, transport: asyncio.Transport) -> None:
        """Write to this transport: that of the socket, or that of TLS on it."""
        self._transport = transport
        for name in _PASSED_ON:
            setattr(self, name, getattr(transport, name))

    def read_at_most(self, size: int) -> None:
        """Read at most this number of bytes at once."""
        self._below.max_size = size  # type: ignore[attr-defined]  # of asyncio's transports

    def get_write_buffer_size(self) -> int:
        size = self._transport.get_write_buffer_size()
        return size if self._transport is self._below else size + self._below.get_write_buffer_size()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._transport.is_closing():
            self.write_total += len(data)
            self._transport.write(data)


class ClientConnection:
    """State of one connection."""

    __slots__ = ("address", "began", "got", "protocol", "sent", "sent_at", "transport", "waits")

    def __init__(self, transport: CountingTransport, address: str, now: float) -> None:
        self.transport = transport
        self.address = address
        self.protocol: RegisteredHttp | RegisteredWebSocket | None = None
        self.waits = True
        """No request is in progress."""
        self.began = now
        """Start of the idle period, or of the request."""
        self.got = 0
        """Bytes received since then."""
        self.sent = -1
        self.sent_at = now

    def held(self) -> int:
        """Return the bytes buffered for the peer: unsent output and incomplete input."""
        received = self.protocol.received if isinstance(self.protocol, RegisteredWebSocket) else 0
        return self.transport.get_write_buffer_size() + received


class ConnectionRegistry:
    """All connections of this process, checked each second while there are any. Used on the server's loop."""

    def __init__(self, limits: Limits, trusted: Collection[str] = (), now: Callable[[], float] = monotonic) -> None:
        self._limits = limits
        self._trusted = [ip_network(one, strict=False) for one in trusted]
        self._now = now
        self._all: dict[ClientConnection, None] = {}
        self._waiting: OrderedDict[ClientConnection, None] = OrderedDict()
        self._waiting_of: dict[str, OrderedDict[ClientConnection, None]] = {}
        self._count: Counter[str] = Counter()
        self._sweeping: asyncio.TimerHandle | None = None
        self.send_timeout = limits.send_timeout
        self.handshake_timeout = limits.request_timeout
        self.refused = 0
        self.aborted = 0

    def __len__(self) -> int:
        return len(self._all)

    def join(self, transport: CountingTransport, address: str) -> ClientConnection | None:
        """Register a new connection, or return None at the limit. The oldest idle connection is closed to make room."""
        if not self._has_place(address):
            self.refused += 1
            log.warning("connection refused: too many connections", extra={"address": address})
            return None
        connection = ClientConnection(transport, address, self._now())
        self._all[connection] = None
        self._count[address] += 1
        self._wait(connection)
        if self._sweeping is None:
            self._sweeping = asyncio.get_running_loop().call_later(SWEEP, self._sweep)
        return connection

    def leave(self, connection: ClientConnection) -> None:
        if self._all.pop(connection, self) is self:
            return
        self._work(connection)
        self._count[connection.address] -= 1
        if not self._count[connection.address]:
            del self._count[connection.address]

    def request_began(self, connection: ClientConnection) -> None:
        self._work(connection)
        connection.began, connection.waits, connection.got = self._now(), False, 0

    def request_ended(self, connection: ClientConnection) -> None:
        if connection in self._all:
            connection.began, connection.waits, connection.got = self._now(), True, 0
            self._wait(connection)

    def _wait(self, connection: ClientConnection) -> None:
        self._waiting[connection] = None
        self._waiting_of.setdefault(connection.address, OrderedDict())[connection] = None

    def _work(self, connection: ClientConnection) -> None:
        self._waiting.pop(connection, None)
        of_address = self._waiting_of.get(connection.address, OrderedDict())
        of_address.pop(connection, None)
        if not of_address:
            self._waiting_of.pop(connection.address, None)

    def _has_place(self, address: str) -> bool:
        limits = self._limits
        if self._count[address] >= limits.connections_per_address and not self._is_trusted(address):
            return self._give_up_oldest(self._waiting_of.get(address))
        return len(self._all) < limits.connections or self._give_up_oldest(self._waiting)

    def _give_up_oldest(self, waiting: OrderedDict[ClientConnection, None] | None) -> bool:
        if not waiting:
            return False
        self.abort(next(iter(waiting)), "idle; closed to make room for a new connection")
        return True

    def _is_trusted(self, address: str) -> bool:
        with suppress(ValueError):
            return any(ip_address(address) in network for network in self._trusted)
        return False

    def abort(self, connection: ClientConnection, why: str) -> None:
        self.aborted += 1
        log.info("connection aborted: %s", why, extra={"address": connection.address})
        self.leave(connection)
        connection.transport.abort()

    # --- progress --------------------------------------------------------------------------------

    def _sweep(self) -> None:
        self._sweeping = asyncio.get_running_loop().call_later(SWEEP, self._sweep) if self._all else None
        now, held = self._now(), []
        for connection in list(self._all):
            if (why := self._why_not(connection, now)) is not None:
                self.abort(connection, why)
            elif size := connection.held():
                held.append((size, connection))
        self._shrink(held)

    def _why_not(self, connection: ClientConnection, now: float) -> str | None:
        """Return the reason to abort a connection, or None."""
        if self._reads_nothing(connection, now):
            return "the client does not read its response"
        if not isinstance(connection.protocol, RegisteredHttp):
            return None
        late = now - connection.began - self._limits.request_timeout
        if connection.waits:
            return "no request received in time" if late > 0 else None
        if late > 0 and connection.protocol.awaits_body and connection.got < late * SLOWEST:
            return "the request body arrives too slowly"
        return None

    def _reads_nothing(self, connection: ClientConnection, now: float) -> bool:
        transport = connection.transport
        if not (size := transport.get_write_buffer_size()):
            connection.sent = -1
            return False
        if (sent := transport.write_total - size) != connection.sent:
            connection.sent, connection.sent_at = sent, now
        return now - connection.sent_at > self.send_timeout

    def _shrink(self, held: list[tuple[int, ClientConnection]]) -> None:
        """Abort the connections with the largest buffers until the total is below its limit."""
        total = sum(size for size, _ in held)
        for size, connection in sorted(held, key=lambda one: one[0], reverse=True):
            if total <= self._limits.connections_mib * MIB:
                return
            self.abort(connection, "the buffers of all connections exceed the memory limit")
            total -= size


class RegisteredHttp(H11Protocol):
    """HTTP protocol whose connection is in the registry, with TLS also before the handshake is done."""

    def __init__(
        self, *args: Any, registry: ConnectionRegistry, tls: ssl.SSLContext | None = None, **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self.access_log = False  # it has queries, with codes in them, and any library may turn its logger on
        self._registry = registry
        self._tls = tls
        self._handshake: asyncio.Task[None] | None = None
        self._has_begun = False
        self._early = b""
        """Received with the end of the handshake, before the transport is known."""
        self._connection: ClientConnection | None = None

    @property
    def awaits_body(self) -> bool:
        """Return whether the application waits for the rest of the body."""
        cycle: Any = self.cycle  # None before the first request
        return cycle is not None and cycle.more_body and not cycle.response_complete and not self.flow.read_paused

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        counted = CountingTransport(transport)
        peer = transport.get_extra_info("peername")
        self._connection = self._registry.join(counted, str(peer[0]) if peer else "")
        if self._connection is None:
            transport.write(REFUSED)
            transport.close()
            return
        self._connection.protocol = self
        upgraded = partial(RegisteredWebSocket, registry=self._registry, connection=self._connection)
        self.ws_protocol_class = upgraded  # type: ignore[assignment]
        _watch(transport, self._registry.send_timeout)
        if self._tls is None:
            self._begin(counted)
        else:
            transport.pause_reading()  # nothing is read without TLS
            shaking = self._shake_hands(transport, counted, self._tls)
            self._handshake = asyncio.create_task(shaking, name="tls handshake")

    def _begin(self, transport: CountingTransport) -> None:
        self._has_begun = True
        super().connection_made(transport)
        if self._early:
            super().data_received(self._early)

    async def _shake_hands(self, transport: asyncio.Transport, counted: CountingTransport, tls: ssl.SSLContext) -> None:
        try:
            secured = await asyncio.get_running_loop().start_tls(
                transport, self, tls, server_side=True, ssl_handshake_timeout=self._registry.handshake_timeout
            )
        except (OSError, RuntimeError) as error:  # also an error of TLS, or the end of the connection
            log.debug("TLS handshake failed: %s", error)
            secured = None
        if secured is None:
            self.leave()
            transport.abort()
        else:
            counted.use(secured)
            self._begin(counted)

    def connection_lost(self, exc: Exception | None) -> None:
        self.leave()
        if self._has_begun:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if (connection := self._connection) is None:
            return
        connection.got += len(data)
        if self._has_begun:
            super().data_received(data)
        else:
            self._early += data

    async def send_chunk(self, data: bytes) -> None:
        """Send a part of the body, without the layers above, when the client has read the earlier ones."""
        if self.flow.write_paused:
            await self.flow.drain()
        self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        connection = self._connection
        if self.cycle is not before and self.scope["http_version"] == "1.1":
            extensions: Any = {CHUNKS: self.send_chunk}
            self.scope["extensions"] = extensions
        if connection is not None and self.cycle is not before and not self.cycle.response_complete:
            self._registry.request_began(connection)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        assert self._connection is not None
        self._registry.request_began(self._connection)
        super().handle_websocket_upgrade(event)

    def on_response_complete(self) -> None:
        if self._connection is not None:
            self._registry.request_ended(self._connection)
        super().on_response_complete()

    def shutdown(self) -> None:
        super().shutdown()
        cycle: Any = self.cycle  # None before the first request
        if cycle is not None and STREAM in cycle.scope:
            self.transport.close()

    def leave(self) -> None:
        if self._connection is not None:
            self._registry.leave(self._connection)


class RegisteredWebSocket(WebSocketsSansIOProtocol):
    """WebSocket protocol that replaces an HTTP connection in the registry."""

    def __init__(self, *args: Any, registry: ConnectionRegistry, connection: ClientConnection, **options: Any) -> None:
        super().__init__(*args, **options)
        self._registry = registry
        self._connection = connection
        connection.protocol = self

    @property
    def received(self) -> int:
        """Return the bytes of an incomplete message."""
        return len(self.conn.reader.buffer) + sum(map(len, self.frames))

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._connection.transport.read_at_most(READ)

    def handle_events(self) -> None:
        if len(self.conn.events) > FRAMES_PER_READ or len(self.frames) > FRAGMENTS:
            self.conn.events.clear()
            self._registry.abort(self._connection, "the client sends too many frames")
        super().handle_events()

    async def run_asgi(self) -> None:
        extensions: dict[str, Any] = self.scope["extensions"] or {}
        extensions[FRAMES] = self.send_frame
        del self.request  # its headers are in the scope
        await super().run_asgi()

    async def send_frame(self, frame: bytes) -> None:
        """Send a frame that is encoded already, when the client has read the earlier ones."""
        await self.writable.wait()
        if self.disconnected or self.close_sent:
            raise ClientDisconnected
        self.transport.write(frame)

    def connection_lost(self, exc: Exception | None) -> None:
        self._registry.leave(self._connection)
        super().connection_lost(exc)
        self.frames = []  # at once: this object is in a cycle, and an incomplete message may have megabytes


def _watch(transport: asyncio.Transport, seconds: float) -> None:
    """Enable TCP keepalive, so that the system notices a vanished peer, and bound what it holds for a slow one."""
    found = transport.get_extra_info("socket")
    with suppress(OSError, AttributeError):
        found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(seconds * 1_500))
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT)
