"""NATS: messages between the nodes of a cluster. Nothing durable is asked of it.

The connection lives on an event loop of its own. When it is lost, messages are dropped until there is a new one: old
messages would only make nodes look for what they have found meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from nats import errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from roost.ports import Host, Loop
from roost.transports.memory import receive_safely

log = logging.getLogger("roost.transport")

PING = 1
"""Seconds between two pings; two without a reply end the connection."""
CONNECT_TIMEOUT = 2
PAUSE = 0.25
"""Seconds between two attempts to connect; up to twice as long, by chance."""
MOST_WAITING = 10_000
"""Messages that wait to be sent; more are dropped."""
LARGEST = 1_000_000
"""Bytes of a message; the server refuses more than 1 MiB."""
CLOSE_TIMEOUT = 2.0


@dataclass(frozen=True, slots=True)
class NatsServers:
    """Servers, and credentials for them. URLs may contain a user and a password, or a token."""

    urls: tuple[str, ...]
    credentials: Path | None = None
    """File with a JWT and a seed."""
    ca: Path | None = None
    """Certificates of the authorities to trust; those of the system by default."""
    cert: Path | None = None
    key: Path | None = None
    """Certificate of this client and its key, for servers that verify clients."""

    @property
    def names(self) -> str:
        """Return the servers without secrets, for messages."""
        parts = [urlsplit(url) for url in self.urls]
        return ", ".join(f"{part.hostname}:{part.port or 4222}" for part in parts)

    def tls(self) -> ssl.SSLContext | None:
        """Return how to verify the servers; None if no connection is encrypted."""
        if self.ca is None and self.cert is None and not any(url.startswith("tls:") for url in self.urls):
            return None
        context = ssl.create_default_context(cafile=self.ca)
        if self.cert is not None:
            context.load_cert_chain(self.cert, self.key)
        return context


class NatsTransport:
    """Transport through NATS. `cluster` keeps the nodes of one database apart from those of others."""

    def __init__(self, host: Host, servers: NatsServers, cluster: str) -> None:
        self._host = host
        self._servers = servers
        self._subject = f"roost.{cluster}"
        self._outbox: deque[tuple[str, bytes]] = deque()
        self._client: Client | None = None
        self._loop: Loop | None = None
        self._bell: asyncio.Event | None = None
        self._connection: asyncio.Future[None] | None = None
        self._closing = False
        self.dropped = 0
        """Number of messages that were not sent."""
        self.problem = "the connection to NATS is not open yet"
        self._refusal = ""
        self._tried = threading.Event()

    @property
    def is_up(self) -> bool:
        return self._client is not None and self._client.is_connected

    def refusal(self, seconds: float) -> str:
        self._tried.wait(seconds)
        return self._refusal

    def start(self, node: str, receive: Callable[[bytes], None]) -> None:
        subjects = (f"{self._subject}.{node}", f"{self._subject}.all")

        async def main(loop: Loop) -> None:
            self._bell = asyncio.Event()
            while not self._closing:
                self._connection = asyncio.ensure_future(self._connect(subjects, receive))
                await asyncio.wait([self._connection])
                await self._pause(PAUSE * (1 + self._host.jitter()))

        self._loop = self._host.start_loop("roost-nats", main, lambda *_: None)

    def send(self, node: str, message: bytes) -> None:
        self._put(f"{self._subject}.{node}", message)

    def send_all(self, message: bytes) -> None:
        self._put(f"{self._subject}.all", message)

    async def close(self) -> None:
        self._closing = True
        if self._loop is not None:
            self._loop.call(self._end)
            if await self._loop.over.within(CLOSE_TIMEOUT + CONNECT_TIMEOUT):
                self._loop.join()

    def _put(self, subject: str, message: bytes) -> None:
        is_ready = self.is_up and not self._closing
        if self._loop is None or not is_ready or len(self._outbox) >= MOST_WAITING or len(message) > LARGEST:
            self.dropped += 1
            return
        self._outbox.append((subject, message))
        if len(self._outbox) == 1:
            self._loop.call(self._ring)

    # --- on the loop -----------------------------------------------------------------------------

    async def _connect(self, subjects: tuple[str, str], receive: Callable[[bytes], None]) -> None:
        """Open a connection and send until it is lost."""

        async def received(message: Msg) -> None:
            if not self._closing:
                receive_safely(receive, message.data)

        client = Client()
        try:
            await self._open(client)
            for subject in subjects:
                await client.subscribe(subject, cb=received)
            await client.flush(CONNECT_TIMEOUT)
            self._opened(client)
            await self._send_until_lost(client)
        except Exception as error:  # nothing else opens it again
            self._report(error)
        finally:
            self._client = None
            self.dropped += len(self._outbox)
            self._outbox.clear()
            with suppress(Exception):  # it may be closed
                await client.close()

    async def _open(self, client: Client) -> None:
        last: list[Exception] = []

        async def failed(error: Exception) -> None:
            last[:] = [error]

        async def lost() -> None:
            self._ring()

        try:
            await client.connect(
                list(self._servers.urls),
                error_cb=failed,
                closed_cb=lost,
                disconnected_cb=lost,
                name="roost",
                allow_reconnect=False,  # it would keep old messages, and give up after some errors
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=CONNECT_TIMEOUT,
                ping_interval=PING,
                max_outstanding_pings=2,
                no_echo=True,
                tls=self._servers.tls(),
                user_credentials=self._servers.credentials,
            )
        except errors.NoServersError as error:
            raise last[0] if last else error from None

    async def _send_until_lost(self, client: Client) -> None:
        assert self._bell is not None
        while client.is_connected:
            while self._outbox:
                await client.publish(*self._outbox[0])
                self._outbox.popleft()
            if self._closing:
                await client.flush(int(CLOSE_TIMEOUT))
                return
            await self._bell.wait()
            self._bell.clear()
        raise client.last_error or errors.ConnectionClosedError

    def _opened(self, client: Client) -> None:
        self._client = client
        self.problem = self._refusal = ""
        self._tried.set()
        log.info("connected to NATS at %s", self._servers.names)

    def _report(self, error: Exception) -> None:
        text = str(error) or type(error).__name__
        is_refused = "authorization violation" in text.lower()
        why = "the server refuses these credentials" if is_refused else text
        problem = f"NATS at {self._servers.names} cannot be used: {why}"
        if is_refused:
            self._refusal = f"{problem}: check the user, password or token in `nats`, or the file `credentials`"
        elif isinstance(error, ssl.SSLCertVerificationError):
            self._refusal = f"{problem}: check `ca`, and the name in `nats`"
        else:
            self._refusal = ""
        self._tried.set()
        if problem != self.problem and not self._closing:
            log.warning("%s; trying again, and polling the store meanwhile", problem)
        self.problem = problem

    async def _pause(self, seconds: float) -> None:
        assert self._bell is not None
        self._bell.clear()
        if not self._closing:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._bell.wait(), seconds)

    def _end(self) -> None:
        if self._connection is not None and not self.is_up:
            self._connection.cancel()
        self._ring()

    def _ring(self) -> None:
        if self._bell is not None:
            self._bell.set()
