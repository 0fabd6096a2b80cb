"""One talk with many subscribers, one of them slow; and connections that are only held."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import roost
from bench.api_client import ApiClient
from bench.figures import Figure, percentile
from bench.startup import Server
from bench.stream_readers import Streamed, StreamLoad, streamed
from bench.subscribers import Load, Measured, subscribed

SUBSCRIBERS, HELD = 1_000, 5_000
RATE, SECONDS = 20, 10
WIDTH = 40
MOST = 20_000
SETTINGS = f"""default_profile = "ticking"
[profiles.ticking]
brain = "bench.fan_out:ticking"
[limits]
connections = {MOST}
connections_per_address = {MOST}
open_requests = {MOST}
open_requests_per_address = {MOST}
open_requests_per_user = {MOST}
requests_per_second = 1000000
request_burst = 1000000
address_requests_per_second = 1000000
address_request_burst = 1000000
"""


async def ticking(turn: roost.Turn) -> AsyncIterator[str]:
    """Write chunks with the time at which they are written: `20 10 40` are 20 a second for 10 seconds, 40 wide."""
    rate, seconds, width = (float(word) for word in turn.text.split())
    start = time.perf_counter()
    for number in range(int(rate * seconds)):
        await asyncio.sleep(max(0.0, start + number / rate - time.perf_counter()))
        yield f"@{time.perf_counter_ns() // 1000} ".ljust(int(width), ".")
    yield "@end "


def fan_out(folder: Path) -> Iterator[Figure]:
    """Measure from the brain to each subscriber; what the clients cost shows how much they disturb the server."""
    for kind in ("rpc", "sse"):
        with many_subscribers(folder / kind) as server:
            measured = server.heard(kind, SUBSCRIBERS, RATE, SECONDS)
        name = f"{kind}_{SUBSCRIBERS}_subscribers"
        count = len(measured.latencies)
        yield Figure(f"{name}_p50", percentile(measured.latencies, 50), "ms", count)
        yield Figure(f"{name}_p99", percentile(measured.latencies, 99), "ms", count, 100)
        yield Figure(f"{name}_server_cpu", server.cpu / SECONDS * 100, "% of a core", count)
        yield Figure(f"{name}_client_cpu", measured.cpu / SECONDS * 100, "% of a core", count)


def held(folder: Path) -> Iterator[Figure]:
    """Measure the memory of connections on which nothing happens."""
    names = {"rpc": "idle_rpc_subscriber", "sse": "idle_sse_subscriber", "http": "idle_http_connection"}
    for kind, name in names.items():
        with many_subscribers(folder / kind) as server:
            yield Figure(name, server.kib_each(kind, HELD), "KiB", HELD, 40)


class SubscribedServer:
    """A server in a process of its own, and the use of it by the last subscribers."""

    def __init__(self, server: Server, data: Path) -> None:
        self._server = server
        self._data = data
        self._headers = ApiClient(server.url, data).headers
        self.cpu = 0.0
        self.grown_mib = 0.0

    def heard(
        self, kind: str, count: int, rate: float, seconds: float, width: int = WIDTH, slow_rate: int = 1_000
    ) -> Measured:
        """Return what the subscribers of an answer measure; one more of them reads slowly."""
        talk = self._talk()
        load = Load(self._server.url, self._headers, talk, kind, count, True, slow_rate, seconds=seconds + 60)
        with subscribed(load) as running:
            before, memory = self._cpu(), self._kib()
            with self._client() as client:
                client.post(f"/api/v1/talks/{talk}/messages", {"content": f"{rate} {seconds} {width}"})
            measured = running.result()
            self.cpu, self.grown_mib = self._cpu() - before, (self._kib() - memory) / 1024
        return measured

    def streamed(self, count: int, message: str, arrivals: float) -> Streamed:
        """Return what the clients of this number of talks measure, each of which sends this message."""
        talks = [self._talk() for _ in range(count)]
        load = StreamLoad(self._server.url, self._headers, talks, message, arrivals)
        before = self._cpu()
        measured = streamed(load)
        self.cpu = self._cpu() - before
        return measured

    def kib_each(self, kind: str, count: int) -> float:
        """Return the memory of the server for each of these connections."""
        before = self._kib()
        with subscribed(Load(self._server.url, self._headers, self._talk(), kind, count)):
            return (self._kib() - before) / count

    def _talk(self) -> str:
        with self._client() as client:
            found: str = client.post("/api/v1/talks", {"profile": "ticking"})["talkSessionId"]
            return found

    def _client(self) -> ApiClient:
        """Return a new client: the server closes connections that are not used for some seconds."""
        return ApiClient(self._server.url, self._data)

    def _kib(self) -> int:
        status = Path(f"/proc/{self._server.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])

    def _cpu(self) -> float:
        user, system = Path(f"/proc/{self._server.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def many_subscribers(folder: Path) -> Iterator[SubscribedServer]:
    """Run a server that accepts thousands of connections of one user."""
    data = folder / "up"
    data.mkdir(parents=True)
    (folder / "roost.toml").write_text(SETTINGS)
    environment = {"ROOST_CONFIG": str(folder / "roost.toml"), "PYTHONPATH": os.pathsep.join(sys.path)}
    with Server(data, **environment) as server:
        yield SubscribedServer(server, data)
