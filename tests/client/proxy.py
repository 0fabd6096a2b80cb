"""Failing network: a proxy that cuts connections on request."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

Allowed = Callable[[bytes], bytes | None]
"""Function from bytes that arrive to those that are passed on; the connection is cut if these are fewer."""
EVENT = re.compile(rb'event: change|{"jsonrpc":"2.0","method":"event"')


class Proxy:
    """Passes bytes to a server and back. `cuts` says after how many bytes of answer each connection is cut.

    With `every`, each connection is cut after this number of events. The server may be replaced, or be away.
    """

    def __init__(self, url: str) -> None:
        self.server: str | None = url
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.cuts: list[int] = []
        self.every: Callable[[], int] | None = None
        self.connections = 0
        self._sockets = [self._listener]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        for one in self._sockets:
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.connections += 1
                self._sockets.append(client)
                try:
                    server = socket.create_connection(("127.0.0.1", urlsplit(self.server or "http://x:1").port))
                except OSError:
                    client.close()
                    continue
                self._sockets.append(server)
                cut = self._cut()
                for source, sink, allowed in ((client, server, bytes), (server, client, cut)):
                    self._threads.append(threading.Thread(target=_pass_on, args=(source, sink, allowed)))
                    self._threads[-1].start()

    def _cut(self) -> Allowed:
        if self.every is not None:
            return _Events(self.every())
        return _Bytes(self.cuts.pop(0)) if self.cuts else bytes


class _Bytes:
    """The first bytes of a connection."""

    def __init__(self, most: int) -> None:
        self._left = most

    def __call__(self, data: bytes) -> bytes | None:
        passed, self._left = data[: self._left], self._left - len(data)
        return passed or None


class _Events:
    """The first events of a connection, of a stream over HTTP or of a subscription."""

    def __init__(self, most: int) -> None:
        self._left = most

    def __call__(self, data: bytes) -> bytes | None:
        starts = [found.start() for found in EVENT.finditer(data)]
        passed = data[: starts[self._left]] if len(starts) > self._left else data
        self._left -= len(starts)
        return passed or None


def _pass_on(source: socket.socket, sink: socket.socket, allowed: Allowed) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            passed = allowed(data)
            sink.sendall(passed or b"")
            if passed is None or len(passed) < len(data):
                break
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def failing(url: str) -> Iterator[Proxy]:
    proxy = Proxy(url)
    try:
        yield proxy
    finally:
        proxy.close()
