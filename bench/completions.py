"""The OpenAI-compatible API: what it adds to the first chunk, over HTTP and on a loop in the same process."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import roost
from bench.figures import Figure, bench, percentile
from bench.startup import Server
from roost.api.auth import identity

COUNT, WARM = 320, 20
SETTINGS = """default_profile = "words"
[profiles.words]
brain = "bench.completions:two_words"
"""


async def two_words(turn: roost.Turn) -> AsyncIterator[str]:
    yield "first"
    await asyncio.sleep(0.002)
    yield "second"


@bench("completions")
def completions(folder: Path) -> Iterator[Figure]:
    """From the request to the first text, in a fresh talk each time; in turns with the same in this process."""
    (folder / "up").mkdir()
    (folder / "roost.toml").write_text(SETTINGS)
    environment = {"ROOST_CONFIG": str(folder / "roost.toml"), "PYTHONPATH": os.pathsep.join(sys.path)}
    inside: list[float] = []
    outside: list[float] = []
    with Server(folder / "up", **environment) as server, asyncio.Runner() as runner:
        client = _Client(server.url, folder / "up")
        service = runner.run(roost.aopen(f"sqlite:///{folder}/inside.db", brains={"words": two_words}))
        for _ in range(COUNT):
            inside.append(runner.run(_in_process(service)))
            outside.append(client.first_text())
        runner.run(service.close())
    inside, outside = inside[WARM:], outside[WARM:]
    added = percentile(outside, 50) - percentile(inside, 50)
    yield Figure("completion_in_process_p50", percentile(inside, 50) * 1e3, "ms", len(inside))
    yield Figure("completion_first_chunk_p50", percentile(outside, 50) * 1e3, "ms", len(outside))
    yield Figure("completion_first_chunk_p99", percentile(outside, 99) * 1e3, "ms", len(outside))
    yield Figure("completion_added_p50", added * 1e3, "ms", len(outside), 3.0)


async def _in_process(service: roost.AsyncAgentService) -> float:
    """The same without the API: a talk, a message, and the first chunk."""
    start, first = time.perf_counter(), 0.0
    talk = await service.create_talk_session("ann", profile="words")
    await service.add_message("ann", talk, "hello")
    async for change in service.stream_messages("ann", talk):
        if not first and change.message.sender == "agent" and change.text:
            first = time.perf_counter() - start
    await service.delete("ann", talk)
    return first


class _Client:
    """A client with one connection that is kept."""

    def __init__(self, url: str, data: Path) -> None:
        mine = identity(data)
        cookie = f"{mine.cookie_name}={mine.cookie('ann')}"
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc)
        self._headers = {"Cookie": cookie, "Origin": url, "Content-Type": "application/json"}
        messages = [{"role": "user", "content": "hello"}]
        self._request = json.dumps({"model": "words", "messages": messages, "stream": True})

    def first_text(self) -> float:
        start = time.perf_counter()
        self._connection.request("POST", "/v1/chat/completions", self._request, self._headers)
        response = self._connection.getresponse()
        assert response.status == 200, response.read()
        while b'"content":"first' not in (line := response.readline()):
            assert line, "the stream has ended without a text"
        first = time.perf_counter() - start
        assert response.read().endswith(b"[DONE]\n\n")
        return first
