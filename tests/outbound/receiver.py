"""A real receiver of webhooks on loopback, which answers as each test wants."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Answer = Callable[[socket.socket], None]


@dataclass
class Receiver:
    """Requests that arrived, as they were sent; `answer` writes the reply of each."""

    port: int = 0
    requests: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    answer: Answer = lambda connection: reply(connection, 200)
    released: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/in?token=s3cret"

    def serve(self, connection: socket.socket) -> None:
        with connection:
            head, _, body = _until(connection, b"\r\n\r\n")
            lines = head.decode().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
            while len(body) < int(headers.get("content-length", 0)):
                body += _received(connection)
            self.requests.append(({**headers, ":line": lines[0]}, body))
            self.answer(connection)


def _until(connection: socket.socket, mark: bytes) -> tuple[bytes, bytes, bytes]:
    read = b""
    while mark not in read:
        read += _received(connection)
    return read.partition(mark)


def _received(connection: socket.socket) -> bytes:
    if not (piece := connection.recv(65_536)):
        raise ConnectionResetError("the sender has gone before the end of its request")
    return piece


def reply(connection: socket.socket, status: int, body: bytes = b"", *headers: str) -> None:
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", "connection: close", *headers]
    connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


@contextmanager
def receiving(answer: Answer | None = None, *, tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    with socket.create_server(("127.0.0.1", 0), backlog=128) as server:
        receiver = Receiver(server.getsockname()[1])
        if answer is not None:
            receiver.answer = answer

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=_quiet, args=(receiver, connection, tls), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            receiver.released.set()
            server.shutdown(socket.SHUT_RDWR)
            thread.join(10)


def _quiet(receiver: Receiver, connection: socket.socket, tls: ssl.SSLContext | None) -> None:
    try:
        receiver.serve(connection if tls is None else tls.wrap_socket(connection, server_side=True))
    except OSError:
        return  # the sender has given up
