"""Requests of programs: the same call in this process, over REST, and over JSON-RPC on a WebSocket."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from websockets.asyncio.client import connect as aconnect
from websockets.sync.client import connect

import roost
from bench.api_client import ApiClient
from bench.fan_out import fan_out, held
from bench.figures import Figure, bench, percentile
from bench.startup import Server

COUNT, WARM = 320, 20
READS, AT_ONCE = 4_000, 32
SETTINGS = """default_profile = "echo"
[profiles.echo]
brain = "echo"
[limits]
requests_per_second = 1000000
request_burst = 1000000
address_requests_per_second = 1000000
address_request_burst = 1000000
"""


@bench("protocols")
def protocols(folder: Path) -> Iterator[Figure]:
    """Add messages and read an agent, one request after another; then read with many requests in flight."""
    (folder / "up").mkdir()
    (folder / "roost.toml").write_text(SETTINGS)
    with roost.open(f"sqlite:///{folder}/inside.db") as service:
        talk = service.create_talk_session("ann", profile="echo")
        service.agents.create("ann", "d", start=False)
        yield from _figures("in_process", _timed(lambda: service.add_message("ann", talk, "hello")), "send")
        yield from _figures("in_process", _timed(lambda: service.agents.get("ann", "d")), "read")
    with Server(folder / "up", ROOST_CONFIG=str(folder / "roost.toml")) as server:
        client = ApiClient(server.url, folder / "up")
        talk = client.post("/api/v1/talks", {"profile": "echo"})["talkSessionId"]
        client.post("/api/v1/agents", {"agentId": "d", "start": False})
        path = f"/api/v1/talks/{talk}/messages"
        yield from _figures("rest", _timed(lambda: client.post(path, {"content": "hello"})), "send")
        yield from _figures("rest", _timed(lambda: client.get("/api/v1/agents/d")), "read")
        with connect(client.socket, additional_headers=client.headers, proxy=None) as socket:
            ask = _asking(socket)
            params = {"talkSessionId": talk, "content": "hello"}
            yield from _figures("rpc", _timed(lambda: ask("talk.addMessage", params)), "send", goal=2.0)
            yield from _figures("rpc", _timed(lambda: ask("agent.get", {"agentId": "d"})), "read")
        rate = asyncio.run(_reads(client.socket, client.headers))
        yield Figure("rpc_reads_in_flight", rate, "1/s", READS, 2_000, more_is_better=True)
    yield from fan_out(folder / "fan-out")
    yield from held(folder / "held")


def _timed(call: Callable[[], Any]) -> list[float]:
    seconds = []
    for _ in range(COUNT):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return seconds[WARM:]


def _figures(place: str, seconds: list[float], what: str, goal: float | None = None) -> Iterator[Figure]:
    yield Figure(f"{place}_{what}_p50", percentile(seconds, 50) * 1e3, "ms", len(seconds), goal)
    yield Figure(f"{place}_{what}_p99", percentile(seconds, 99) * 1e3, "ms", len(seconds))
    yield Figure(f"{place}_{what}s", len(seconds) / sum(seconds), "1/s", len(seconds), more_is_better=True)


def _asking(socket: Any) -> Callable[[str, dict[str, Any]], Any]:
    def ask(method: str, params: dict[str, Any]) -> Any:
        socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
        answer = json.loads(socket.recv())
        assert "result" in answer, answer
        return answer["result"]

    return ask


async def _reads(address: str, headers: dict[str, str]) -> float:
    """Return reads per second on one connection, with a bounded number of requests in flight."""
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "agent.get", "params": {"agentId": "d"}})
    async with aconnect(address, additional_headers=headers, proxy=None) as socket:
        start = time.perf_counter()
        for _ in range(AT_ONCE):
            await socket.send(request)
        for number in range(READS):
            assert '"result"' in str(await socket.recv())
            if number < READS - AT_ONCE:
                await socket.send(request)
        return READS / (time.perf_counter() - start)
