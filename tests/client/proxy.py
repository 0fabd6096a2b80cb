"""Failing network: a proxy that cuts connections on request."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


class Proxy:
    """Passes bytes to a server and back. `cuts` says after how many bytes of answer each connection is cut."""

    def __init__(self, url: str) -> None:
        self._target = ("127.0.0.1", urlsplit(url).port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.cuts: list[int] = []
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
                most = self.cuts.pop(0) if self.cuts else None
                server = socket.create_connection(self._target)
                self._sockets += [client, server]
                for source, sink, bound in ((client, server, None), (server, client, most)):
                    self._threads.append(threading.Thread(target=_pass_on, args=(source, sink, bound)))
                    self._threads[-1].start()


def _pass_on(source: socket.socket, sink: socket.socket, most: int | None) -> None:
    passed = 0
    with suppress(OSError):
        while data := source.recv(65536):
            if most is not None and passed + len(data) >= most:
                sink.sendall(data[: most - passed])
                break
            sink.sendall(data)
            passed += len(data)
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
