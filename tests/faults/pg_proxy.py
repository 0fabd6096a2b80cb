"""A network between Roost and PostgreSQL that fails: replies are lost, or nothing passes any more."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import parse_qs, urlsplit


class PostgresProxy:
    """Passes bytes between a port of this machine and the server's socket."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = f"{parse_qs(parts.query)['host'][0]}/.s.PGSQL.5432"
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.url = f"postgresql://{parts.username or 'roost'}@127.0.0.1:{port}{parts.path}?sslmode=disable"
        self._open = threading.Event()
        self._open.set()
        self._commit = b""
        self.lost = 0
        """Number of replies to a commit that were lost."""
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def lose_reply(self, mark: bytes) -> None:
        """Cut the connection that has sent these bytes after the server has done its next commit."""
        self._commit = mark

    def hang(self) -> None:
        """Let nothing pass any more, and keep all connections."""
        self._open.clear()

    def resume(self) -> None:
        self._open.set()

    def cut(self) -> None:
        """Cut all connections, as a server does that is restarted."""
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            _close(*pair)

    def close(self) -> None:
        self._open.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                server.connect(self._target)
                self._pairs.append((client, server))
                marked = threading.Event()
                doomed = threading.Event()
                for act in (self._ask, self._answer):
                    args = (client, server, marked, doomed)
                    self._threads.append(threading.Thread(target=act, args=args, daemon=True))
                    self._threads[-1].start()

    def _ask(
        self, client: socket.socket, server: socket.socket, marked: threading.Event, doomed: threading.Event
    ) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                self._open.wait()
                if self._commit and self._commit in data:
                    self._commit = b""
                    marked.set()
                if marked.is_set() and b"COMMIT" in data:
                    doomed.set()
                server.sendall(data)
        _close(client, server)

    def _answer(
        self, client: socket.socket, server: socket.socket, marked: threading.Event, doomed: threading.Event
    ) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                self._open.wait()
                if doomed.is_set():
                    self.lost += 1
                    break
                client.sendall(data)
        _close(client, server)


def _close(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()


@contextmanager
def proxied(url: str) -> Iterator[PostgresProxy]:
    proxy = PostgresProxy(url)
    try:
        yield proxy
    finally:
        proxy.close()
