"""Another user in a process of its own: measure how long a server takes to answer while others attack it.

`driver_answer_times.py URL TOKEN COUNT PID` prints the seconds of each request as JSON, over JSON-RPC and over REST,
and the processor time that the server used until it answered. On a busy machine a server waits for the processor: the
second measure leaves that out.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

from websockets.sync.client import connect

PAUSE = 0.02


async def measured(ways: dict[str, Callable[[], None]], count: int, server: int) -> dict[str, list[float]]:
    clock = (~server << 3) | 2  # processor time of another process, as clock_getcpuclockid returns it
    found: dict[str, list[float]] = defaultdict(list)
    for _ in range(count):
        for name, ask in ways.items():
            start, used = time.perf_counter(), time.clock_gettime(clock)
            ask()
            found[name].append(time.perf_counter() - start)
            found[f"{name} cpu"].append(time.clock_gettime(clock) - used)
            await asyncio.sleep(PAUSE)  # the rate of a user
    return found


def main(url: str, token: str, count: int, server: int) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    with connect(f"{url.replace('http', 'ws')}/rpc", additional_headers=headers, proxy=None) as socket:

        def rpc() -> None:
            socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "agent.list", "params": {}}))
            answer: dict[str, Any] = json.loads(socket.recv(timeout=30))
            assert answer["result"] == [], answer

        def rest() -> None:
            """Ask on a new connection: idle ones may be closed at any time."""
            with closing(http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)) as connection:
                connection.request("GET", "/api/v1/agents", headers=headers)
                answer: dict[str, Any] = json.loads(connection.getresponse().read())
                assert answer.get("items") == [], answer

        ways = {"rpc": rpc, "rest": rest}
        asyncio.run(measured(ways, 5, server))
        print("ready", flush=True)
        sys.stdin.readline()
        print(json.dumps(asyncio.run(measured(ways, count, server))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
