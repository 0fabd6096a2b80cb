"""Clients of many talks in a process of their own: `python -m bench.stream_readers`.

Each has one connection, on which it sends a message and then reads the stream of its talk to the end. The parameters
come on standard input, the results go to standard output. Like `bench.subscribers` it has no HTTP library.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from bench.subscribers import LONGEST, STAMP

END = b"event: end\n"


@dataclass(frozen=True, slots=True)
class StreamLoad:
    """Talks to read, and the message to each of them. The clients begin within `arrivals` seconds."""

    url: str
    headers: dict[str, str]
    talks: list[str]
    message: str
    arrivals: float = 0.0
    seconds: float = 60.0


@dataclass(slots=True)
class Streamed:
    """Results: milliseconds of each chunk since it was written, of each first chunk since its message; CPU seconds."""

    latencies: list[float] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)
    cpu: float = 0.0


class StreamReader(asyncio.Protocol):
    """Connection of one client."""

    def __init__(self, load: StreamLoad, talk: str, results: Streamed) -> None:
        self._load, self._talk, self._results = load, talk, results
        self._began = 0.0
        self._rest = b""
        self._is_streaming = False
        self._transport: asyncio.Transport
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def begin(self) -> None:
        """Send the message."""
        self._began = time.perf_counter() * 1e3
        body = json.dumps({"content": self._load.message}).encode()
        more = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        self._transport.write(self._head(f"POST /api/v1/talks/{self._talk}/messages", more) + body)

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter() * 1e3
        data = self._rest + data if self._rest else data
        if self._is_streaming:
            self._streamed(data, now)
        else:
            self._replied(data)

    def _streamed(self, data: bytes, now: float) -> None:
        if self._began and STAMP.search(data):
            self._results.firsts.append(now - self._began)
            self._began = 0.0
        end = 0
        for found in STAMP.finditer(data):
            self._results.latencies.append(now - int(found[1]) / 1e3)
            end = found.end()
        if END in data and not self.ended.done():
            self.ended.set_result(None)
        self._rest = data[max(end, len(data) - LONGEST) :]

    def _replied(self, data: bytes) -> None:
        """Open the stream when the reply to the message is complete."""
        head, _, body = data.partition(b"\r\n\r\n")
        if b" 20" not in head[:12] or not body.endswith(b"}"):
            self._rest = data
            if head and b" 20" not in head[:12]:
                self.ended.set_exception(RuntimeError(data[:300].decode(errors="replace")))
            return
        self._rest, self._is_streaming = b"", True
        self._transport.write(self._head(f"GET /api/v1/talks/{self._talk}/stream", {}))

    def connection_lost(self, error: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_exception(error or ConnectionResetError("closed by the server"))

    def _head(self, target: str, more: dict[str, str]) -> bytes:
        fields = {"Host": urlsplit(self._load.url).netloc, **self._load.headers, **more}
        return "\r\n".join([f"{target} HTTP/1.1", *(f"{k}: {v}" for k, v in fields.items()), "", ""]).encode()


async def read(load: StreamLoad) -> Streamed:
    """Connect all clients, have them begin, and wait for the end of all streams."""
    loop, results, port = asyncio.get_running_loop(), Streamed(), urlsplit(load.url).port or 80
    readers = [StreamReader(load, talk, results) for talk in load.talks]
    for reader in readers:
        await loop.create_connection(partial(next, iter([reader])), "127.0.0.1", port)
    before = time.process_time()
    for number, reader in enumerate(readers):
        loop.call_later(load.arrivals * number / len(readers), reader.begin)
    async with asyncio.timeout(load.seconds):
        await asyncio.gather(*(reader.ended for reader in readers))
    results.cpu = time.process_time() - before
    return results


def streamed(load: StreamLoad) -> Streamed:
    """Run the clients in a process of their own, and return what they have measured."""
    process = subprocess.run(
        [sys.executable, "-m", "bench.stream_readers"],
        input=json.dumps(asdict(load)),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return Streamed(**json.loads(process.stdout))


def main() -> None:
    given: dict[str, Any] = json.loads(sys.stdin.read())
    print(json.dumps(asdict(asyncio.run(read(StreamLoad(**given))))), flush=True)


if __name__ == "__main__":
    main()
