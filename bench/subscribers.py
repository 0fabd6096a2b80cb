"""Subscribers of one talk in a process of their own: `python -m bench.subscribers`.

Its parameters come on standard input. It is written for throughput, since it shares the machine with the server: it has
no WebSocket library, and reads the times at which the brain wrote its chunks directly from the bytes. It prints a line
when all are subscribed, waits for a line, and prints what it has measured until the text has ended.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import urlsplit

STAMP = re.compile(rb"@(\d{6,20}) ")
"""Time at which a chunk was written, in microseconds of the clock that all processes share."""
END = b"@end "
LONGEST = 32
"""Bytes that are kept of one read for the next one: a stamp may be cut in two."""


@dataclass(frozen=True, slots=True)
class Load:
    """Work of the process: the number of subscribers, and one more that reads slowly."""

    url: str
    headers: dict[str, str]
    talk: str = ""
    kind: str = "rpc"
    count: int = 1
    has_slow: bool = False
    slow_rate: int = 1_000
    """Bytes that the slow one reads in a second."""
    at_once: int = 50
    seconds: float = 60.0


@dataclass(slots=True)
class Measured:
    """Results: latencies in milliseconds, and its own CPU use."""

    latencies: list[float] = field(default_factory=list)
    ended: int = 0
    lost: int = 0
    cpu: float = 0.0
    slow_bytes: int = 0
    slow_notices: int = 0
    slow_open: bool = True


class Subscriber(asyncio.Protocol):
    """Connection that reads as fast as it can."""

    def __init__(self, load: Load, measured: Measured, ready: asyncio.Future[None], ended: asyncio.Event) -> None:
        self._load, self._measured, self._ready, self._ended = load, measured, ready, ended
        self._rest = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(request(self._load))

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter() * 1e3
        data = self._rest + data if self._rest else data
        if not self._ready.done():
            self._opened(data)
            return
        if data[0] == 0x89:  # a ping, which the server sends between two events
            self._transport.write(frame(data[2 : 2 + data[1]], 0x8A))
        end = 0
        for found in STAMP.finditer(data):
            self._measured.latencies.append(now - int(found[1]) / 1e3)
            end = found.end()
        if END in data:
            self._measured.ended += 1
            if self._measured.ended >= self._load.count:
                self._ended.set()
        self._rest = data[max(end, len(data) - LONGEST) :]

    def _opened(self, data: bytes) -> None:
        """Subscribe when the connection is open; be ready when the reply has come."""
        head, found, _ = data.partition(b"\r\n\r\n")
        if found and b" 101 " in head[:20] and b'"result"' not in data:
            self._rest = data
            if len(data) == len(head) + 4:
                self._transport.write(subscription(self._load))
        elif (found and b" 200 " in head[:20]) or b'"result"' in data:
            self._ready.set_result(None)
        elif found:
            self._ready.set_exception(RuntimeError(data[:300].decode(errors="replace")))
        else:
            self._rest = data

    def connection_lost(self, error: Exception | None) -> None:
        self._measured.lost += 1
        if not self._ready.done():
            self._ready.set_exception(error or ConnectionResetError("closed by the server"))


def request(load: Load) -> bytes:
    """Return the head that opens a subscription, or a WebSocket for it."""
    fields = {"Host": urlsplit(load.url).netloc, **load.headers}
    path = "/healthz"
    if load.kind == "rpc":
        path = "/rpc"
        fields |= {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
        fields["Sec-WebSocket-Key"] = "AAAAAAAAAAAAAAAAAAAAAA=="
    elif load.kind == "sse":
        path = f"/api/v1/talks/{load.talk}/stream?follow=true"
    return "\r\n".join([f"GET {path} HTTP/1.1", *(f"{k}: {v}" for k, v in fields.items()), "", ""]).encode()


def subscription(load: Load) -> bytes:
    params = {"topic": "talk", "talkSessionId": load.talk}
    call = {"jsonrpc": "2.0", "id": 1, "method": "subscribe", "params": params}
    return frame(json.dumps(call).encode())


def frame(payload: bytes, head: int = 0x81) -> bytes:
    """Return a frame of a client; its mask is zero, which changes nothing."""
    size = len(payload)
    length = bytes([0x80 | size]) if size < 126 else b"\xfe" + struct.pack(">H", size)
    return bytes([head]) + length + b"\0\0\0\0" + payload


async def opened(load: Load, measured: Measured, ended: asyncio.Event) -> None:
    """Open all connections, some at once."""
    loop, places = asyncio.get_running_loop(), asyncio.Semaphore(load.at_once)
    address = urlsplit(load.url)

    async def one() -> None:
        async with places:
            ready = loop.create_future()
            await loop.create_connection(
                lambda: Subscriber(load, measured, ready, ended), "127.0.0.1", address.port or 80
            )
            await asyncio.wait_for(ready, 60)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(load.count):
            tasks.create_task(one())


async def read_slowly(load: Load, measured: Measured) -> None:
    """Subscribe, and read a little each second."""
    loop = asyncio.get_running_loop()
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        slow.setblocking(False)
        await loop.sock_connect(slow, ("127.0.0.1", urlsplit(load.url).port))
        await loop.sock_sendall(slow, request(load))
        seen = await loop.sock_recv(slow, 4_096)
        if load.kind == "rpc":
            await loop.sock_sendall(slow, subscription(load))
        while data := await loop.sock_recv(slow, load.slow_rate):
            measured.slow_bytes += len(data)
            seen = seen[-LONGEST:] + data
            measured.slow_notices += seen.count(b"delayed") - seen[:LONGEST].count(b"delayed")
            await asyncio.sleep(1)
    measured.slow_open = False


async def run(load: Load) -> Measured:
    measured, ended = Measured(), asyncio.Event()
    slow = asyncio.create_task(read_slowly(load, measured)) if load.has_slow else None
    await opened(load, measured, ended)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    before = time.process_time()
    try:
        async with asyncio.timeout(load.seconds):
            await ended.wait()
    except TimeoutError:
        pass
    measured.cpu = time.process_time() - before
    if slow is not None:
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)
    return measured


class Running:
    """The process with its subscribers, all of them ready."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def result(self) -> Measured:
        """Wait for the end of the text; return what was measured."""
        out, _ = self._process.communicate("\n")
        return Measured(**json.loads(out))


@contextmanager
def subscribed(load: Load) -> Iterator[Running]:
    """Start the process, and wait until all its subscribers are ready."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.subscribers"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        print(json.dumps(asdict(load)), file=process.stdin, flush=True)
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("the subscribers could not be opened; see their error above")
        yield Running(process)
    finally:
        process.kill()
        process.wait()


def main() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    given: dict[str, Any] = json.loads(sys.stdin.readline())
    print(json.dumps(asdict(asyncio.run(run(Load(**given))))), flush=True)


if __name__ == "__main__":
    main()
