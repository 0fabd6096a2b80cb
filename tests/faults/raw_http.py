"""Clients that do not behave: sockets that send a part of a request, or do not read its answer."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from tests.api.serving import Served


@contextmanager
def sockets(served: Served, count: int, sent: bytes = b"", buffer: int | None = None) -> Iterator[list[socket.socket]]:
    """Open this many connections, each of which sends these bytes; `buffer`: how much each receives unread."""
    opened: list[socket.socket] = []
    try:
        for _ in range(count):
            one = socket.socket()
            opened.append(one)
            if buffer is not None:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
            one.settimeout(20)
            one.connect(("127.0.0.1", urlsplit(served.url).port))
            if sent:
                with suppress(ConnectionError):  # refused already
                    one.sendall(sent)
        yield opened
    finally:
        for one in opened:
            one.close()


def request(served: Served, method: str, path: str, user: str | None, headers: str = "", body: bytes = b"") -> bytes:
    """Return the head of a request, and the beginning of its body, as a browser of this user sends it."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {urlsplit(served.url).netloc}", f"Origin: {served.url}"]
    if user is not None:
        lines.append(f"Cookie: {served.identity.cookie_name}={served.identity.cookie(user)}")
    return "\r\n".join([*lines, *filter(None, [headers]), "", ""]).encode() + body


def answer(one: socket.socket) -> bytes:
    """Return what comes until the server closes the connection, or the first answer is there; b"" if nothing came."""
    got = b""
    with suppress(ConnectionError):
        while b"\r\n\r\n" not in got and (piece := one.recv(65_536)):
            got += piece
    return got


def is_closed(one: socket.socket) -> bool:
    """Return whether the server has closed it; what it sent before is read."""
    one.settimeout(0.001)
    try:
        while one.recv(65_536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True
